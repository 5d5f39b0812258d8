//! Rules as CEL, for the API server.
//!
//! A [`CelRule`] is equivalent to its rule in Rust: it holds exactly if the rule has no finding. Tests compare the two
//! on objects near the boundaries of the rule (`crdgen/tests/agreement`, and on a real API server
//! `tests/e2e/scenarios/expressions`).

use crate::finding::ErrorKind;
use std::borrow::Cow;

/// A rule, or a part of it, about one path of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CelRule {
    /// The path: fields separated by dots, `[]` for the items of a list; empty for the object itself. Objects without
    /// the path are not checked.
    pub path: &'static str,
    /// The condition of a valid object. `self` is the value at the path. With `oldSelf` it applies to updates only.
    pub expression: Cow<'static, str>,
    /// The violation and the accepted values, in the words of the rule.
    pub message: &'static str,
    /// The message with the value seen, as an expression that returns a string.
    pub message_expression: Option<Cow<'static, str>>,
    /// The violating field below the path, such as `.borrowWithinCohort.policy`; empty for the path itself.
    pub field_path: Cow<'static, str>,
    /// The condition under which an update keeps a violation of the stored object unchanged. `self` and `oldSelf` are
    /// the values at the path. Transition rules have none.
    pub unchanged: Cow<'static, str>,
    /// The kind of error.
    pub kind: ErrorKind,
}

impl CelRule {
    /// A rule about a path, with the message for a violation.
    pub(crate) fn new(
        path: &'static str,
        expression: impl Into<Cow<'static, str>>,
        message: &'static str,
    ) -> Self {
        Self {
            path,
            expression: expression.into(),
            message,
            message_expression: None,
            field_path: Cow::Borrowed(""),
            unchanged: Cow::Borrowed("self == oldSelf"),
            kind: ErrorKind::Invalid,
        }
    }

    /// Adds a message with the value seen.
    pub(crate) fn message_expression(self, expression: impl Into<Cow<'static, str>>) -> Self {
        Self {
            message_expression: Some(expression.into()),
            ..self
        }
    }

    /// Sets the violating field.
    pub(crate) fn field_path(self, field: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field_path: field.into(),
            ..self
        }
    }

    /// Sets the condition under which an update keeps a violation unchanged.
    pub(crate) fn unchanged_when(self, condition: impl Into<Cow<'static, str>>) -> Self {
        Self {
            unchanged: condition.into(),
            ..self
        }
    }

    /// Sets the kind of error.
    pub(crate) fn with_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Whether the rule compares an object with the stored one.
    #[must_use]
    pub fn is_transition_rule(&self) -> bool {
        self.expression.contains("oldSelf")
    }
}

/// The condition that a field of the object `new` is unchanged from the object `old`, or absent in both.
///
/// The cost for the API server is not in the comparison. For each field that an expression selects from an object, the
/// server builds the schemas of all fields of that object again (`Structural.Properties` of
/// `k8s.io/apiextensions-apiserver`, 1.37): three hundred bytes for each of them, twice. A status is written several
/// times in the life of a workload, and each write evaluates all transition rules. So an object that is read twice is
/// bound to a name, as in `[self.spec].all(it, …)`, and the condition that ends most evaluations comes first. A bound
/// name has no size limits in the server's cost estimate, so it must not be used to compare strings.
pub(crate) fn same_field(new: &str, old: &str, field: &str) -> String {
    format!(
        "has({new}.{field}) ? has({old}.{field}) && {new}.{field} == {old}.{field} : !has({old}.{field})"
    )
}

/// A quantity for comparison in CEL. The value may be a number or a string.
pub(crate) fn quantity(value: &str) -> String {
    format!("quantity(string({value}))")
}

/// The condition that a field of `self` is a valid quantity. Invalid quantities are the subject of other rules.
pub(crate) fn is_quantity(field: &str) -> String {
    format!("has(self.{field}) && isQuantity(string(self.{field}))")
}

/// The condition that a field of `oldSelf` has the same quantity as in `self`, in any notation.
pub(crate) fn same_quantity(field: &str) -> String {
    format!(
        "has(oldSelf.{field}) && isQuantity(string(oldSelf.{field})) \
         && quantity(string(self.{field})).compareTo(quantity(string(oldSelf.{field}))) == 0"
    )
}

/// The rule that no quota has this limit unless `parent`, the field with the name of the parent cohort, is set.
pub(crate) fn limit_needs_parent(limit: &str, parent: &str, message: &'static str) -> CelRule {
    CelRule::new(
        "spec",
        format!(
            "(has(self.{parent}) && self.{parent} != '') || !has(self.resourceGroups) \
             || self.resourceGroups.all(group, group.flavors.all(flavor, flavor.resources.all(it, !has(it.{limit}))))"
        ),
        message,
    )
    .field_path(".resourceGroups")
    .unchanged_when(format!(
        "!(has(oldSelf.{parent}) && oldSelf.{parent} != '') && self.resourceGroups.all(group, \
         group.flavors.all(flavor, flavor.resources.all(it, !has(it.{limit}) || (has(oldSelf.resourceGroups) \
         && oldSelf.resourceGroups.exists(before, before.coveredResources[0] == group.coveredResources[0] \
         && before.flavors.exists(of, of.name == flavor.name && of.resources.exists(was, was.name == it.name \
         && has(was.{limit}) && quantity(string(was.{limit})).compareTo(quantity(string(it.{limit}))) == 0)))))))"
    ))
}

/// The rule that the map in a field below the path has valid label keys and values.
pub(crate) fn valid_labels(path: &'static str, field: &str) -> CelRule {
    CelRule::new(
        path,
        format!(
            "!has(self.{field}) || self.{field}.all(it, !format.qualifiedName().validate(it).hasValue() \
             && !format.labelValue().validate(self.{field}[it]).hasValue())"
        ),
        "the keys must be label keys and the values label values: alphanumeric characters, '-', '_' or '.', with an \
         alphanumeric one first and last",
    )
    .message_expression(format!(
        "'\"' + self.{field}.filter(it, format.qualifiedName().validate(it).hasValue() \
         || format.labelValue().validate(self.{field}[it]).hasValue())[0] \
         + '\": this label has a faulty key or value: alphanumeric characters, - and _ and ., with an alphanumeric one first \
         and last'"
    ))
    .field_path(format!(".{field}"))
    .unchanged_when(format!(
        "has(oldSelf.{field}) && self.{field}.all(it, \
         (!format.qualifiedName().validate(it).hasValue() || it in oldSelf.{field}) \
         && (!format.labelValue().validate(self.{field}[it]).hasValue() \
         || oldSelf.{field}.exists(was, oldSelf.{field}[was] == self.{field}[it])))"
    ))
}
