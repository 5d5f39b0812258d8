//! What rules say in Kubernetes' CEL, for the API server.
//!
//! An expression says of an object what its rule says in Rust: it holds if and only if the rule finds nothing. Both are
//! held against each other on objects near what the rule allows (`crdgen/tests/agreement`, and on a real API server
//! `tests/e2e/scenarios/expressions`).

use crate::finding::ErrorKind;

/// What a rule says, or a part of it, of one place in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CelRule {
    /// The place: fields with dots between them, `[]` behind one for the items of its list; empty for the object itself.
    /// Where there is none in an object nothing is said of it.
    pub path: &'static str,
    /// What holds if all is well. `self` is the value at the place. One that names `oldSelf` is about updates alone.
    pub expression: &'static str,
    /// What is wrong and what would be accepted, in the words of the rule.
    pub message: &'static str,
    /// The same with what is seen in the object, as an expression that gives a text.
    pub message_expression: Option<&'static str>,
    /// The field that is to blame, below the place, such as `.borrowWithinCohort.policy`; the place itself if empty.
    pub field_path: &'static str,
    /// What is left as it was, if a finding of an update is one that the stored object has too. `self` and `oldSelf` are
    /// the values at the place. An expression about updates has none.
    pub unchanged: &'static str,
    /// What kind of error it is.
    pub kind: ErrorKind,
}

impl CelRule {
    /// An expression about a place, with what is said if it does not hold.
    pub(crate) const fn new(
        path: &'static str,
        expression: &'static str,
        message: &'static str,
    ) -> Self {
        Self {
            path,
            expression,
            message,
            message_expression: None,
            field_path: "",
            unchanged: "self == oldSelf",
            kind: ErrorKind::Invalid,
        }
    }

    /// With what is seen in the object.
    pub(crate) const fn message_expression(self, detail: &'static str) -> Self {
        Self {
            message_expression: Some(detail),
            ..self
        }
    }

    /// With the field that is to blame.
    pub(crate) const fn field_path(self, field: &'static str) -> Self {
        Self {
            field_path: field,
            ..self
        }
    }

    /// With what is left as it was by an update that makes nothing worse.
    pub(crate) const fn unchanged_when(self, kept: &'static str) -> Self {
        Self {
            unchanged: kept,
            ..self
        }
    }

    /// As an error of this kind.
    pub(crate) const fn with_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Whether it compares an object with what is stored.
    #[must_use]
    pub fn is_transition_rule(&self) -> bool {
        self.expression.contains("oldSelf")
    }
}

/// That a field is what it was, if it is there at all: `$it` and `$was` are objects.
///
/// What an expression costs the API server is not what it compares. For each field that it looks up in an object, the
/// server makes the schemas of all fields of that object anew (`Structural.Properties` of
/// `k8s.io/apiextensions-apiserver`, 1.37): three hundred bytes for each of them, twice. A status is written several times
/// in the life of a workload, and each time all expressions about updates are evaluated. So what is looked at twice is
/// named once, as in `[self.spec].all(it, …)`, and what ends most evaluations stands first. What is named so has no
/// limits for the server's estimate of the cost, so it is no way to compare texts.
macro_rules! same_field {
    ($it:literal, $was:literal, $field:literal) => {
        concat!(
            "has(", $it, ".", $field, ") ? has(", $was, ".", $field, ") && ", $it, ".", $field,
            " == ", $was, ".", $field, " : !has(", $was, ".", $field, ")"
        )
    };
}

/// A quantity as CEL compares it. It may be written as a number.
macro_rules! quantity {
    ($($field:literal),+) => {
        concat!("quantity(string(", $($field),+, "))")
    };
}

/// Whether there is a quantity in a field of `self` that can be compared. What is none is for others to refuse.
macro_rules! is_amount {
    ($field:literal) => {
        concat!(
            "has(self.",
            $field,
            ") && isQuantity(string(self.",
            $field,
            "))"
        )
    };
}

/// Whether `oldSelf` has the same amount in a field, however it is written.
macro_rules! same_amount {
    ($field:literal) => {
        concat!(
            "has(oldSelf.",
            $field,
            ") && isQuantity(string(oldSelf.",
            $field,
            ")) && quantity(string(self.",
            $field,
            ")).compareTo(quantity(string(oldSelf.",
            $field,
            "))) == 0"
        )
    };
}

/// That no quota has a limit where nobody is above: `$above` is the field that names who is.
macro_rules! limit_needs {
    ($limit:literal, $above:literal, $message:literal) => {
        CelRule::new(
            "spec",
            concat!(
                "(has(self.", $above, ") && self.", $above, " != '') || !has(self.resourceGroups) \
                 || self.resourceGroups.all(group, group.flavors.all(flavor, flavor.resources.all(it, !has(it.", $limit, "))))"
            ),
            $message,
        )
        .field_path(".resourceGroups")
        .unchanged_when(concat!(
            "!(has(oldSelf.", $above, ") && oldSelf.", $above, " != '') && self.resourceGroups.all(group, \
             group.flavors.all(flavor, flavor.resources.all(it, !has(it.", $limit, ") || (has(oldSelf.resourceGroups) \
             && oldSelf.resourceGroups.exists(before, before.coveredResources[0] == group.coveredResources[0] \
             && before.flavors.exists(of, of.name == flavor.name && of.resources.exists(was, was.name == it.name \
             && has(was.", $limit, ") && quantity(string(was.", $limit, ")).compareTo(quantity(string(it.", $limit,
            "))) == 0)))))))"
        ))
    };
}

/// That a map in a field of the place has keys and values that labels may have.
macro_rules! labels_of {
    ($at:literal, $field:literal) => {
        CelRule::new(
            $at,
            concat!(
                "!has(self.", $field, ") || self.", $field, ".all(it, !format.qualifiedName().validate(it).hasValue() \
                 && !format.labelValue().validate(self.", $field, "[it]).hasValue())"
            ),
            "the keys must be label keys and the values label values: alphanumeric characters, '-', '_' or '.', with an \
             alphanumeric one first and last",
        )
        .message_expression(concat!(
            "'\"' + self.", $field, ".filter(it, format.qualifiedName().validate(it).hasValue() \
             || format.labelValue().validate(self.", $field, "[it]).hasValue())[0] \
             + '\": this label has a faulty key or value: alphanumeric characters, - and _ and ., with an alphanumeric one first \
             and last'"
        ))
        .field_path(concat!(".", $field))
        .unchanged_when(concat!(
            "has(oldSelf.", $field, ") && self.", $field, ".all(it, \
             (!format.qualifiedName().validate(it).hasValue() || it in oldSelf.", $field, ") \
             && (!format.labelValue().validate(self.", $field, "[it]).hasValue() \
             || oldSelf.", $field, ".exists(was, oldSelf.", $field, "[was] == self.", $field, "[it])))"
        ))
    };
}

pub(crate) use {is_amount, labels_of, limit_needs, quantity, same_amount, same_field};
