//! Validates types, bounds, enums, formats and list keys.

use super::node::{DEPTH_MAX, Format, ListType, Node, SchemaType};
use super::path::{PathStack, PathStep};
use crate::finding::{ErrorKind, FINDINGS_PER_RULE_MAX, Finding, quoted};
use crate::rule_ids::SCHEMA_VIOLATION;
use jiff::Timestamp;
use lockkeeper_api::field_path::FieldPath;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Findings for violated types and bounds.
pub(super) fn check_shape(root: &Node, object: &Value, old: Option<&Value>) -> Vec<Finding> {
    let mut shape = ShapeChecker::default();
    shape.node(root, object, old, &mut PathStack::default());
    shape.findings
}

/// The stored version of a list item. Only items of lists with `x-kubernetes-list-map-keys` have one.
pub(super) fn find_stored_item<'a>(
    list: &ListType,
    item: &Value,
    old: Option<&'a Value>,
) -> Option<&'a Value> {
    let ListType::Map(keys) = list else {
        return None;
    };
    let mut old = old?.as_array()?.iter();
    old.find(|it| keys.iter().all(|key| it.get(key) == item.get(key)))
}

pub(super) fn stored_field<'a>(old: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    old.and_then(|it| it.get(name))
}

#[derive(Default)]
struct ShapeChecker {
    findings: Vec<Finding>,
}

impl ShapeChecker {
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
                value: value.map(display_value),
                detail: detail.into(),
            });
        }
    }

    fn node<'a>(
        &mut self,
        node: &'a Node,
        value: &'a Value,
        old: Option<&Value>,
        way: &mut PathStack<'a>,
    ) {
        // Ratcheting: unchanged values are not validated again.
        if old == Some(value) || way.depth() > DEPTH_MAX {
            return;
        }
        if value.is_null() && node.is_nullable {
            return;
        }
        if let Some(kind) = node.kind
            && !has_kind(kind, value)
        {
            let detail = format!(
                "must be of type {}, not {}",
                kind.name(),
                json_type_name(value)
            );
            self.report(way.path(), ErrorKind::TypeInvalid, Some(value), detail);
            return;
        }
        // A value of the wrong type has returned above: its bounds would only repeat the finding.
        self.value(node, value, way);
        match value {
            Value::Object(fields) => {
                for name in &node.required {
                    if !fields.contains_key(name) {
                        let path = way.path().named(name.as_str());
                        self.report(path, ErrorKind::Required, None, "must be given");
                    }
                }
                for (name, value) in fields {
                    let (child, step) = match node.properties.get(name) {
                        Some(child) => (Some(child), PathStep::Field(name)),
                        None => (node.additional.as_deref(), PathStep::Entry(name)),
                    };
                    if let Some(child) = child {
                        let old = stored_field(old, name);
                        way.with_step(step, |way| self.node(child, value, old, way));
                    }
                }
            }
            Value::Array(items) => {
                self.unique(&node.list, items, way);
                if let Some(child) = &node.items {
                    for (index, item) in items.iter().enumerate() {
                        let old = find_stored_item(&node.list, item, old);
                        way.with_step(PathStep::Index(index), |way| {
                            self.node(child, item, old, way);
                        });
                    }
                }
            }
            _ => {}
        }
        self.branches(node, value, way);
    }

    /// Validates the value without its children.
    fn value(&mut self, node: &Node, value: &Value, way: &PathStack<'_>) {
        if !node.enum_values.is_empty() && !node.enum_values.contains(value) {
            let accepted = node
                .enum_values
                .iter()
                .map(display_value)
                .collect::<Vec<_>>();
            let detail = format!("supported values: {}", accepted.join(", "));
            self.report(way.path(), ErrorKind::NotSupported, Some(value), detail);
        }
        match value {
            Value::String(text) => self.text(node, text, value, way),
            Value::Number(_) => self.number(node, value, way),
            Value::Array(items) => {
                self.count(items.len(), node.bounds.items, "items", value, way);
            }
            Value::Object(fields) => {
                self.count(
                    fields.len(),
                    node.bounds.properties,
                    "properties",
                    value,
                    way,
                );
            }
            _ => {}
        }
    }

    fn text(&mut self, node: &Node, text: &str, value: &Value, way: &PathStack<'_>) {
        // OpenAPI counts code points, although the API server's message says bytes.
        let length = text.chars().count();
        let (min, max) = node.bounds.length;
        if max.is_some_and(|max| length > index(max)) {
            let detail = format!("may not be more than {} bytes", max.unwrap_or_default());
            self.report(way.path(), ErrorKind::TooLong, Some(value), detail);
        }
        if min.is_some_and(|min| length < index(min)) {
            let detail = format!("must have at least {} characters", min.unwrap_or_default());
            self.report(way.path(), ErrorKind::Invalid, Some(value), detail);
        }
        if let Some(pattern) = &node.pattern
            && !pattern.is_match(text)
        {
            let detail = pattern_description(pattern.as_str());
            self.report(way.path(), ErrorKind::Invalid, Some(value), detail);
        }
        if node.format == Some(Format::DateTime) && text.parse::<Timestamp>().is_err() {
            let detail = "must be a time, such as 2026-01-31T12:00:00Z";
            self.report(way.path(), ErrorKind::Invalid, Some(value), detail);
        }
    }

    fn number(&mut self, node: &Node, value: &Value, way: &PathStack<'_>) {
        let bounds = &node.bounds;
        let number = value.as_f64().unwrap_or_default();
        if let Some(min) = bounds.min
            && (number < min || (bounds.is_min_exclusive && number <= min))
        {
            let detail = format!("must be greater than or equal to {min}");
            self.report(way.path(), ErrorKind::Invalid, Some(value), detail);
        }
        if let Some(max) = bounds.max
            && (number > max || (bounds.is_max_exclusive && number >= max))
        {
            let detail = format!("must be less than or equal to {max}");
            self.report(way.path(), ErrorKind::Invalid, Some(value), detail);
        }
        let is_small = value.as_i64().is_some_and(|it| i32::try_from(it).is_ok());
        if node.format == Some(Format::Int32) && !is_small {
            let detail = "must be a whole number of 32 bits";
            self.report(way.path(), ErrorKind::Invalid, Some(value), detail);
        }
    }

    fn count(
        &mut self,
        count: usize,
        (min, max): (Option<u64>, Option<u64>),
        what: &str,
        value: &Value,
        way: &PathStack<'_>,
    ) {
        if max.is_some_and(|max| count > index(max)) {
            let detail = format!("must have at most {} {what}", max.unwrap_or_default());
            let actual = Value::from(count);
            self.report(way.path(), ErrorKind::TooMany, Some(&actual), detail);
        }
        if min.is_some_and(|min| count < index(min)) {
            let detail = format!("must have at least {} {what}", min.unwrap_or_default());
            self.report(way.path(), ErrorKind::Invalid, Some(value), detail);
        }
    }

    /// Reports the second of equal items in a set or a map list.
    fn unique(&mut self, list: &ListType, items: &[Value], way: &PathStack<'_>) {
        if *list == ListType::Atomic {
            return;
        }
        let mut seen: BTreeMap<(bool, Cow<'_, str>), usize> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            // Most lists have a single string key; it needs no JSON text.
            let key = match list {
                ListType::Map(keys) => match keys.as_slice() {
                    [key] => Cow::Borrowed(&item[key]),
                    keys => {
                        let of = keys.iter().map(|key| (key.clone(), item[key].clone()));
                        Cow::Owned(Value::Object(of.collect()))
                    }
                },
                ListType::Atomic | ListType::Set => Cow::Borrowed(item),
            };
            let name = match &key {
                // The flag separates the string `1` from the number 1, whose JSON text is the same.
                Cow::Borrowed(Value::String(text)) => (true, Cow::Borrowed(text.as_str())),
                other => (false, Cow::Owned(other.to_string())),
            };
            let count = seen.entry(name).or_default();
            *count = count.saturating_add(1);
            // A third equal item would repeat the finding of the second.
            if *count == 2 {
                let duplicate = key.into_owned();
                let path = way.keyed_path().index(at);
                self.report(
                    path,
                    ErrorKind::Duplicate,
                    Some(&duplicate),
                    "may stand in this list once",
                );
            }
        }
    }

    fn branches(&mut self, node: &Node, value: &Value, way: &PathStack<'_>) {
        // Branches get no stored value: a changed value must match them as a whole.
        let fits = |it: &Node| check_shape(it, value, None).is_empty();
        let fitting = |all: &[Node]| all.iter().filter(|it| fits(it)).count();
        let problem = if fitting(&node.all_of) < node.all_of.len() {
            "must validate all the schemas (allOf)"
        } else if !node.any_of.is_empty() && fitting(&node.any_of) == 0 {
            "must validate at least one schema (anyOf)"
        } else if !node.one_of.is_empty() && fitting(&node.one_of) != 1 {
            "must validate one and only one schema (oneOf)"
        } else if node.not.as_deref().is_some_and(fits) {
            "must not validate the schema (not)"
        } else {
            return;
        };
        self.report(way.path(), ErrorKind::Invalid, Some(value), problem);
    }
}

/// Common patterns, with a description.
const KNOWN_PATTERNS: [(&str, &str); 3] = [
    (
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "must be a DNS subdomain: lower-case letters, digits, '-' and '.', with a letter or digit at \
         both ends of each part",
    ),
    (
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "must be a DNS label: lower-case letters, digits and '-', with a letter or digit at both ends",
    ),
    (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "must be a quantity, such as 500m, 4 or 16Gi",
    ),
];

/// The message for a violated pattern.
fn pattern_description(pattern: &str) -> Cow<'static, str> {
    let known = KNOWN_PATTERNS.iter().find(|(it, _)| *it == pattern);
    known.map_or_else(
        || Cow::Owned(format!("must match {pattern}")),
        |(_, words)| Cow::Borrowed(*words),
    )
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn has_kind(kind: SchemaType, value: &Value) -> bool {
    match kind {
        SchemaType::Object => value.is_object(),
        SchemaType::Array => value.is_array(),
        SchemaType::String => value.is_string(),
        SchemaType::Boolean => value.is_boolean(),
        SchemaType::Number => value.is_number(),
        SchemaType::Integer => is_integer(value),
        SchemaType::IntOrString => value.is_string() || is_integer(value),
    }
}

fn is_integer(value: &Value) -> bool {
    // JSON has one number type: 1.0 is an integer, as in OpenAPI validation.
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as messages print it: lists and objects as JSON text, cut at a bound.
#[must_use]
pub fn display_value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(_) | Value::Object(_) => quoted(&value.to_string()),
        other => other.to_string(),
    }
}
