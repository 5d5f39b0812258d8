//! Validates types, formats, bounds, enums and logic as `k8s.io/kube-openapi/pkg/validation/validate`.
//!
//! The validators of a failed `anyOf` or `oneOf` report the branch with the most matches, so each result counts its
//! matches exactly as kube-openapi does.

use super::correlation::Correlated;
use super::node::{Bounds, Kind, Node};
use super::numbers;
use super::values::quoted_json;
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding};
use crate::rule_ids::SCHEMA_VIOLATION;
use crate::structural::path::{PathStack, PathStep};
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The deepest object that is validated. The decoder rejects deeper ones.
const DEPTH_MAX: usize = 512;

/// Findings for a new object.
pub(super) fn validate(root: &Node, value: &Value) -> Vec<Finding> {
    let mut validator = Validator {
        way: PathStack::default(),
        ignores_int_or_string: false,
    };
    validator.node(root, value, None).findings
}

/// Findings for a default. The API server validates it by the structural schema, in which `x-kubernetes-int-or-string`
/// is no type.
pub(super) fn validate_default(root: &Node, value: &Value) -> Vec<Finding> {
    let mut validator = Validator {
        way: PathStack::default(),
        ignores_int_or_string: true,
    };
    validator.node(root, value, None).findings
}

/// Findings for an update. Unchanged parts with a stored version are not reported.
pub(super) fn validate_update(root: &Node, correlation: Correlated<'_>) -> Vec<Finding> {
    let mut validator = Validator {
        way: PathStack::default(),
        ignores_int_or_string: false,
    };
    validator.ratcheting(root, correlation).findings
}

/// The result of one or more validators.
#[derive(Default)]
struct Outcome {
    findings: Vec<Finding>,
    matches: u64,
}

impl Outcome {
    fn is_valid(&self) -> bool {
        self.findings.is_empty()
    }

    fn merge(&mut self, other: Self) {
        let room = FINDINGS_PER_RULE_MAX.saturating_sub(self.findings.len());
        self.findings.extend(other.findings.into_iter().take(room));
        self.add_matches(other.matches);
    }

    fn add_matches(&mut self, count: u64) {
        self.matches = self.matches.saturating_add(count);
    }

    fn report(
        &mut self,
        field: FieldPath,
        kind: ErrorKind,
        value: Option<&Value>,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if self.findings.len() < FINDINGS_PER_RULE_MAX {
            self.findings.push(Finding {
                rule: Cow::Borrowed(SCHEMA_VIOLATION),
                field,
                kind,
                value: value.map(quoted_json),
                detail: detail.into(),
            });
        }
    }
}

struct Validator<'a> {
    way: PathStack<'a>,
    ignores_int_or_string: bool,
}

impl<'a> Validator<'a> {
    /// The accepted types; none means any.
    fn accepted<'n>(&self, node: &'n Node) -> &'n [Kind] {
        if self.ignores_int_or_string {
            node.kind.as_slice()
        } else {
            node.types()
        }
    }

    fn path(&self) -> FieldPath {
        self.way.path()
    }

    /// Validates a part with a stored version; its findings are dropped if it is unchanged.
    fn ratcheting(&mut self, node: &'a Node, correlation: Correlated<'a>) -> Outcome {
        let mut outcome = self.node(node, correlation.new, Some(correlation));
        if !outcome.is_valid() && correlation.is_unchanged() {
            outcome.findings.clear();
        }
        outcome
    }

    /// Validates a value. `around` is the value with its stored version, if it has one.
    fn node(
        &mut self,
        node: &'a Node,
        value: &'a Value,
        around: Option<Correlated<'a>>,
    ) -> Outcome {
        let mut all = Outcome::default();
        if self.way.depth() > DEPTH_MAX {
            return all;
        }
        if value.is_null() {
            if node.is_nullable || self.accepted(node).is_empty() {
                all.add_matches(1);
            } else {
                self.wrong_type(node, value, &mut all);
            }
            self.enum_values(node, value, &mut all);
            return all;
        }
        if !self.accepted(node).is_empty() || !node.checked_format().is_empty() {
            self.types(node, value, &mut all);
            all.add_matches(1);
        }
        let logic = self.logic(node, value);
        all.merge(logic);
        all.add_matches(1);
        match value {
            Value::String(text) => {
                self.string(node, text, value, &mut all);
                all.add_matches(1);
                if let Some(is_valid) = super::formats::check(node.checked_format(), text) {
                    all.add_matches(1);
                    if !is_valid {
                        let detail = format!("must be of type {}", node.checked_format());
                        all.report(self.path(), ErrorKind::TypeInvalid, Some(value), detail);
                    }
                }
            }
            Value::Number(_) => {
                self.number(node, value, &mut all);
                all.add_matches(2);
            }
            Value::Array(items) => {
                let outcome = self.items(node, items, around);
                all.merge(outcome);
                all.add_matches(2);
            }
            _ => {}
        }
        self.enum_values(node, value, &mut all);
        all.add_matches(1);
        if let Value::Object(fields) = value {
            let outcome = self.fields(node, fields, around);
            all.merge(outcome);
            all.add_matches(1);
        }
        all.add_matches(1);
        all
    }

    fn wrong_type(&self, node: &Node, value: &Value, all: &mut Outcome) {
        let names: Vec<&str> = self.accepted(node).iter().map(|it| it.name()).collect();
        let detail = format!("must be of type {}", names.join(","));
        all.report(self.path(), ErrorKind::TypeInvalid, Some(value), detail);
    }

    fn types(&self, node: &Node, value: &Value, all: &mut Outcome) {
        let types = self.accepted(node);
        let format = node.checked_format();
        let has = |kind: Kind| types.contains(&kind);
        let (actual, actual_format) = match value {
            Value::Bool(_) => (Kind::Boolean, ""),
            Value::Number(_) if value.as_i64().is_some() => (Kind::Integer, "int64"),
            Value::Number(_) => (Kind::Number, "float64"),
            Value::Array(_) => (Kind::Array, ""),
            Value::Object(_) => (Kind::Object, ""),
            _ => (Kind::String, ""),
        };
        let float = value.as_f64().unwrap_or_default();
        let is_whole =
            actual == Kind::Number && numbers::is_json_integer(float) && has(Kind::Integer);
        let fits = has(actual) || is_whole || (actual == Kind::Integer && has(Kind::Number));
        let is_text_or_list = matches!(value, Value::String(_) | Value::Array(_));
        if !is_text_or_list && !format.is_empty() && !fits && format != actual_format {
            let detail = format!("must be of type {format}");
            all.report(self.path(), ErrorKind::TypeInvalid, Some(value), detail);
            return;
        }
        // The format is validated instead.
        let is_formatted = is_text_or_list && !format.is_empty();
        let is_checked_by_format = is_formatted && !has(Kind::Number) && !has(Kind::Integer);
        if is_checked_by_format || fits {
            all.add_matches(1);
        } else {
            self.wrong_type(node, value, all);
        }
    }

    fn string(&self, node: &Node, text: &str, value: &Value, all: &mut Outcome) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(max) = node.bounds.max_length.filter(|max| length > *max) {
            let detail = format!("may not be more than {max} bytes");
            all.report(self.path(), ErrorKind::TooLong, None, detail);
        } else if let Some(min) = node.bounds.min_length.filter(|min| length < *min) {
            let detail = format!("should be at least {min} chars long");
            all.report(self.path(), ErrorKind::Invalid, Some(value), detail);
        } else if let Some(pattern) = &node.pattern
            && !pattern.regex.as_ref().is_some_and(|it| it.is_match(text))
        {
            let detail = format!("should match '{}'", pattern.text);
            all.report(self.path(), ErrorKind::Invalid, Some(value), detail);
        }
    }

    fn number(&self, node: &Node, value: &Value, all: &mut Outcome) {
        let range = numbers::Range::new(self.accepted(node), node.checked_format());
        let bounds = &node.bounds;
        let constraints = [
            (Some(value.clone()), "Checked"),
            (bounds.multiple_of.map(Value::from), "MultipleOf"),
            (bounds.maximum.map(Value::from), "Maximum boundary"),
            (bounds.minimum.map(Value::from), "Minimum boundary"),
        ];
        for (number, prefix) in constraints {
            if number.is_some_and(|it| !range.contains(&it)) {
                let detail = format!("{prefix} value must be {range} in {}", self.path());
                // The API server names no field here.
                all.report(FieldPath::default(), ErrorKind::Invalid, None, detail);
            }
        }
        let is_in_range = |bound: f64| range.contains(&Value::from(bound));
        for detail in number_findings(bounds, value, &is_in_range) {
            all.report(self.path(), ErrorKind::Invalid, Some(value), detail);
        }
    }

    fn items(
        &mut self,
        node: &'a Node,
        items: &'a [Value],
        around: Option<Correlated<'a>>,
    ) -> Outcome {
        let mut all = Outcome::default();
        if let Some(schema) = node.items.as_deref() {
            for (position, item) in items.iter().enumerate() {
                self.way.push(PathStep::Index(position));
                let outcome = match around.and_then(|it| it.index(position)) {
                    Some(correlation) => self.ratcheting(schema, correlation),
                    None => self.node(schema, item, None),
                };
                self.way.pop();
                all.merge(outcome);
            }
        }
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = node.bounds.min_items.filter(|min| count < *min) {
            let detail = format!("should have at least {min} items");
            all.report(self.path(), ErrorKind::Invalid, Some(&count.into()), detail);
        }
        if let Some(max) = node.bounds.max_items.filter(|max| count > *max) {
            let detail = format!("must have at most {max} items");
            all.report(self.path(), ErrorKind::TooMany, Some(&count.into()), detail);
        }
        all
    }

    fn field(
        &mut self,
        name: &'a str,
        schema: &'a Node,
        value: &'a Value,
        around: Option<Correlated<'a>>,
    ) -> Outcome {
        self.way.push(PathStep::Field(name));
        let is_type_meta = name == "kind" || name == "apiVersion";
        let correlation = around.filter(|it| !(it.is_root && is_type_meta));
        let outcome = match correlation.and_then(|it| it.key(name)) {
            Some(correlation) => self.ratcheting(schema, correlation),
            None => self.node(schema, value, None),
        };
        self.way.pop();
        outcome
    }

    fn fields(
        &mut self,
        node: &'a Node,
        fields: &'a Map<String, Value>,
        around: Option<Correlated<'a>>,
    ) -> Outcome {
        let mut all = Outcome::default();
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(min) = node.bounds.min_properties.filter(|min| count < *min) {
            let detail = format!("should have at least {min} properties");
            all.report(self.path(), ErrorKind::Invalid, Some(&count.into()), detail);
        }
        if let Some(max) = node.bounds.max_properties.filter(|max| count > *max) {
            let detail = format!("must have at most {max} items");
            all.report(self.path(), ErrorKind::TooMany, Some(&count.into()), detail);
        }
        for (name, value) in fields {
            if let Some(schema) = node.field(name) {
                let outcome = self.field(name, schema, value, around);
                all.merge(outcome);
            }
        }
        for name in &node.required {
            if !fields.contains_key(name) {
                let path = self.path().named(name.as_str());
                all.report(path, ErrorKind::Required, None, "");
            }
        }
        all
    }

    fn enum_values(&self, node: &Node, value: &Value, all: &mut Outcome) {
        if node.enum_values.is_empty()
            || node
                .enum_values
                .iter()
                .any(|it| numbers::equals_enum_value(value, it))
        {
            return;
        }
        let names: Vec<String> = node.enum_values.iter().map(quoted_json).collect();
        let detail = format!("supported values: {}", names.join(", "));
        all.report(self.path(), ErrorKind::NotSupported, Some(value), detail);
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`. Their branches do not ratchet.
    fn logic(&mut self, node: &'a Node, value: &'a Value) -> Outcome {
        let mut all = Outcome::default();
        // The API server names no field in the findings of logic.
        let composite = |all: &mut Outcome, path: FieldPath, problem: &str| {
            let detail = format!("\"{path}\" {problem}");
            all.report(FieldPath::default(), ErrorKind::Invalid, None, detail);
        };
        if !node.any_of.is_empty() {
            let (valid, best) = self.branches(&node.any_of, value, true);
            if valid == 0 {
                composite(
                    &mut all,
                    self.path(),
                    "must validate at least one schema (anyOf)",
                );
            }
            all.merge(best);
        }
        if !node.one_of.is_empty() {
            let (valid, best) = self.branches(&node.one_of, value, false);
            if valid != 1 {
                let problem =
                    format!("must validate one and only one schema (oneOf); found {valid} valid");
                composite(&mut all, self.path(), &problem);
            }
            if valid <= 1 {
                all.merge(best);
            }
        }
        let mut is_violated = false;
        for branch in &node.all_of {
            let outcome = self.node(branch, value, None);
            is_violated |= !outcome.is_valid();
            all.merge(outcome);
        }
        if is_violated {
            composite(
                &mut all,
                self.path(),
                "must validate all the schemas (allOf)",
            );
        }
        if let Some(branch) = node.not.as_deref()
            && self.node(branch, value, None).is_valid()
        {
            composite(&mut all, self.path(), "must not validate the schema (not)");
        }
        all.add_matches(1);
        all
    }

    /// The number of valid branches, and the first valid or else the best result.
    fn branches(
        &mut self,
        branches: &'a [Node],
        value: &'a Value,
        stops_at_first: bool,
    ) -> (usize, Outcome) {
        let mut valid: usize = 0;
        let mut best: Option<Outcome> = None;
        for branch in branches {
            let outcome = self.node(branch, value, None);
            if outcome.is_valid() {
                valid = valid.saturating_add(1);
                if valid == 1 {
                    best = Some(outcome);
                }
                if stops_at_first {
                    break;
                }
            } else if valid == 0 && best.as_ref().is_none_or(|it| outcome.matches > it.matches) {
                best = Some(outcome);
            }
        }
        (valid, best.unwrap_or_default())
    }
}

/// Violated bounds of a number.
fn number_findings(
    bounds: &Bounds,
    value: &Value,
    is_in_range: &dyn Fn(f64) -> bool,
) -> Vec<String> {
    let mut out = Vec::new();
    let float = value.as_f64().unwrap_or_default();
    // A bound that is no value of the type is compared as a float.
    let integer = |bound: f64| value.as_i64().filter(|_| is_in_range(bound));
    if let Some(factor) = bounds.multiple_of {
        let is_multiple = match integer(factor) {
            Some(integer) => numbers::is_multiple_of_integer(integer, factor),
            None => numbers::is_multiple_of(float, factor),
        };
        if !is_multiple {
            out.push(format!("should be a multiple of {factor}"));
        }
    }
    let exceeds = |bound: f64, is_exclusive: bool, is_maximum: bool| {
        let order = match integer(bound) {
            Some(integer) => integer.partial_cmp(&numbers::truncate(bound)),
            None => float.partial_cmp(&bound),
        };
        let order = order.map(|it| if is_maximum { it } else { it.reverse() });
        order.is_some_and(|it| it.is_gt() || (is_exclusive && it.is_eq()))
    };
    if let Some(maximum) = bounds.maximum
        && exceeds(maximum, bounds.is_maximum_exclusive, true)
    {
        let than = if bounds.is_maximum_exclusive {
            "less than"
        } else {
            "less than or equal to"
        };
        out.push(format!("should be {than} {maximum}"));
    }
    if let Some(minimum) = bounds.minimum
        && exceeds(minimum, bounds.is_minimum_exclusive, false)
    {
        let than = if bounds.is_minimum_exclusive {
            "greater than"
        } else {
            "greater than or equal to"
        };
        out.push(format!("should be {than} {minimum}"));
    }
    out
}
