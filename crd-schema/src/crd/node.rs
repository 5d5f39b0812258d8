//! A compiled schema: the structure and the value validations of one place.

use super::cel_rule::Rule;
use super::formats;
use super::go_regex;
use super::values::{array_at, flag_at, text_at, texts_at};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// The deepest schema. The API server has no limit; the deepest schemas of known projects have about 30 levels.
const DEPTH_MAX: usize = 96;

/// A schema that cannot be compiled.
#[derive(Debug)]
pub(super) struct NodeError {
    pub(super) place: String,
    pub(super) problem: String,
}

/// The `type` of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// `x-kubernetes-list-type` with its keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ListType {
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Bounds of strings, lists, objects and numbers.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) maximum: Option<f64>,
    pub(super) minimum: Option<f64>,
    pub(super) is_maximum_exclusive: bool,
    pub(super) is_minimum_exclusive: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) max_length: Option<i64>,
    pub(super) min_length: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) min_items: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) min_properties: Option<i64>,
}

/// The compiled schema of one place, or a branch of `allOf`, `anyOf`, `oneOf` or `not`.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent keywords of the schema"
)]
pub(super) struct Node {
    pub(super) kind: Option<Kind>,
    pub(super) is_int_or_string: bool,
    pub(super) is_nullable: bool,
    pub(super) is_embedded: bool,
    pub(super) preserves_unknown_fields: bool,
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Node>,
    /// Whether the schema has the keyword `properties`.
    pub(super) has_properties: bool,
    /// `additionalProperties` as a schema.
    pub(super) additional: Option<Box<Node>>,
    /// `additionalProperties: true`.
    pub(super) allows_additional: bool,
    pub(super) items: Option<Box<Node>>,
    pub(super) list: ListType,
    /// The format as written.
    pub(super) format: String,
    pub(super) bounds: Bounds,
    pub(super) pattern: Option<Pattern>,
    pub(super) enum_values: Vec<Value>,
    pub(super) required: Vec<String>,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
    pub(super) rules: Vec<Rule>,
    /// Whether this node or one below it has CEL rules.
    pub(super) has_rules_below: bool,
}

/// A `pattern`; without a regex if it does not compile.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) regex: Option<Regex>,
}

impl Node {
    /// Compiles an `openAPIV3Schema`.
    pub(super) fn from_schema(schema: &Value) -> Result<Self, NodeError> {
        Self::new(schema, &mut Vec::new())
    }

    /// Whether the schema describes `apiVersion`, `kind` and the name of a resource, so that expressions read them as it
    /// says (`WithTypeAndObjectMeta` of Kubernetes); otherwise they read standard fields.
    pub(super) fn describes_resource(&self) -> bool {
        let has_kind = |node: &Self, name: &str, kind| {
            let property = node.properties.get(name);
            property.is_some_and(|it| it.kind == Some(kind))
        };
        let metadata = self.properties.get("metadata");
        has_kind(self, "kind", Kind::String)
            && has_kind(self, "apiVersion", Kind::String)
            && has_kind(self, "metadata", Kind::Object)
            && metadata.is_some_and(|it| {
                has_kind(it, "name", Kind::String) && has_kind(it, "generateName", Kind::String)
            })
    }

    fn new(schema: &Value, at: &mut Vec<String>) -> Result<Self, NodeError> {
        if at.len() > DEPTH_MAX {
            return Err(error(at, "the schema is nested too deep"));
        }
        if !schema.is_object() && !schema.is_null() {
            return Err(error(at, "must be an object"));
        }
        if schema.get("$ref").is_some() {
            return Err(error(at, "$ref is not supported in structural schemas"));
        }
        let mut properties = BTreeMap::new();
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in fields.into_iter().flatten() {
            at.push(format!("properties.{name}"));
            properties.insert(name.clone(), Self::new(schema, at)?);
            at.pop();
        }
        let additional = schema.get("additionalProperties");
        let mut node = Self {
            kind: kind(schema, at)?,
            is_int_or_string: flag_at(schema, "x-kubernetes-int-or-string"),
            is_nullable: flag_at(schema, "nullable"),
            is_embedded: flag_at(schema, "x-kubernetes-embedded-resource"),
            preserves_unknown_fields: flag_at(schema, "x-kubernetes-preserve-unknown-fields"),
            default: schema.get("default").filter(|it| !it.is_null()).cloned(),
            has_properties: fields.is_some(),
            properties,
            additional: child(
                additional.filter(|it| it.is_object()),
                "additionalProperties",
                at,
            )?,
            allows_additional: additional == Some(&Value::Bool(true)),
            items: child(schema.get("items"), "items", at)?,
            list: list_type(schema),
            format: text_at(schema, "format").unwrap_or_default().to_owned(),
            bounds: bounds(schema),
            pattern: text_at(schema, "pattern")
                .filter(|it| !it.is_empty())
                .map(|text| Pattern {
                    text: text.to_owned(),
                    regex: go_regex::compile(text),
                }),
            enum_values: array_at(schema, "enum").to_vec(),
            required: texts_at(schema, "required"),
            all_of: branches(schema, "allOf", at)?,
            any_of: branches(schema, "anyOf", at)?,
            one_of: branches(schema, "oneOf", at)?,
            not: child(schema.get("not"), "not", at)?,
            rules: array_at(schema, "x-kubernetes-validations")
                .iter()
                .map(Rule::new)
                .collect(),
            has_rules_below: false,
        };
        node.has_rules_below = !node.rules.is_empty()
            || node.properties.values().any(|it| it.has_rules_below)
            || node.all_of.iter().any(|it| it.has_rules_below)
            || [&node.additional, &node.items]
                .iter()
                .any(|it| it.as_ref().is_some_and(|it| it.has_rules_below));
        Ok(node)
    }

    /// The schemas of the values directly below: of items, additional properties and properties.
    pub(super) fn below_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        [&mut self.items, &mut self.additional]
            .into_iter()
            .flatten()
            .map(AsMut::as_mut)
            .chain(self.properties.values_mut())
    }

    /// The schema of a field: of the property, or of `additionalProperties`.
    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or(self.additional.as_deref())
    }

    /// The accepted types; none means any.
    pub(super) fn types(&self) -> &[Kind] {
        if self.is_int_or_string {
            return &[Kind::Integer, Kind::String];
        }
        self.kind.as_slice()
    }

    /// The format that value validation checks; empty if the API server ignores it.
    pub(super) fn checked_format(&self) -> &str {
        let is_checked = match self.types() {
            [Kind::Integer] => matches!(self.format.as_str(), "int32" | "int64"),
            [Kind::Number] => matches!(self.format.as_str(), "float" | "double"),
            [Kind::String] | [] | [_, _] => formats::is_known(&self.format),
            _ => false,
        };
        if is_checked { &self.format } else { "" }
    }

    /// Whether `additionalProperties` is set and not false.
    pub(super) fn has_additional(&self) -> bool {
        self.additional.is_some() || self.allows_additional
    }
}

fn error(at: &[String], problem: &str) -> NodeError {
    NodeError {
        place: format!(".{}", at.join(".")),
        problem: problem.to_owned(),
    }
}

fn kind(schema: &Value, at: &[String]) -> Result<Option<Kind>, NodeError> {
    let Some(name) = text_at(schema, "type").filter(|it| !it.is_empty()) else {
        return Ok(None);
    };
    let kinds = [
        Kind::Object,
        Kind::Array,
        Kind::String,
        Kind::Integer,
        Kind::Number,
        Kind::Boolean,
    ];
    match kinds.into_iter().find(|it| it.name() == name) {
        Some(kind) => Ok(Some(kind)),
        None => Err(error(at, &format!("there is no type {name:?}"))),
    }
}

fn child(
    schema: Option<&Value>,
    name: &str,
    at: &mut Vec<String>,
) -> Result<Option<Box<Node>>, NodeError> {
    let Some(schema) = schema.filter(|it| it.is_object()) else {
        return Ok(None);
    };
    at.push(name.to_owned());
    let node = Node::new(schema, at)?;
    at.pop();
    Ok(Some(Box::new(node)))
}

fn branches(schema: &Value, key: &str, at: &mut Vec<String>) -> Result<Vec<Node>, NodeError> {
    let mut nodes = Vec::new();
    for (position, branch) in array_at(schema, key).iter().enumerate() {
        at.push(format!("{key}[{position}]"));
        nodes.push(Node::new(branch, at)?);
        at.pop();
    }
    Ok(nodes)
}

fn list_type(schema: &Value) -> ListType {
    match text_at(schema, "x-kubernetes-list-type") {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts_at(schema, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

fn bounds(schema: &Value) -> Bounds {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let count = |key: &str| schema.get(key).and_then(Value::as_i64);
    Bounds {
        maximum: number("maximum"),
        minimum: number("minimum"),
        is_maximum_exclusive: flag_at(schema, "exclusiveMaximum"),
        is_minimum_exclusive: flag_at(schema, "exclusiveMinimum"),
        multiple_of: number("multipleOf"),
        max_length: count("maxLength"),
        min_length: count("minLength"),
        max_items: count("maxItems"),
        min_items: count("minItems"),
        max_properties: count("maxProperties"),
        min_properties: count("minProperties"),
    }
}
