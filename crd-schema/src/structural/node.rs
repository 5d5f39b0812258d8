//! The nodes of a compiled schema.

use super::error::SchemaError;
use crate::cel::fast_path::FastCel;
use kube_cel::{CompiledSchema, compile_schema};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// The deepest schema, in levels.
pub(super) const DEPTH_MAX: usize = 64;

/// The JSON types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

impl SchemaType {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntOrString => "integer or string",
        }
    }
}

/// The `x-kubernetes-list-type` of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ListType {
    #[default]
    Atomic,
    Set,
    /// With these key fields.
    Map(Vec<String>),
}

/// Bounds of a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) is_min_exclusive: bool,
    pub(super) is_max_exclusive: bool,
    pub(super) length: (Option<u64>, Option<u64>),
    pub(super) items: (Option<u64>, Option<u64>),
    pub(super) properties: (Option<u64>, Option<u64>),
}

/// The validated formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Int32,
    Int64,
    DateTime,
}

/// Whether a node or a descendant has CEL rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CelPresence {
    #[default]
    Absent,
    Present,
}

/// One node of a schema.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) kind: Option<SchemaType>,
    pub(super) is_nullable: bool,
    pub(super) preserves_unknown: bool,
    /// An embedded object with own `apiVersion`, `kind` and `metadata`.
    pub(super) is_embedded: bool,
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) required: Vec<String>,
    pub(super) additional: Option<Box<Node>>,
    pub(super) items: Option<Box<Node>>,
    pub(super) list: ListType,
    pub(super) enum_values: Vec<Value>,
    pub(super) pattern: Option<Regex>,
    pub(super) format: Option<Format>,
    pub(super) bounds: Bounds,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
    /// The CEL rules of this node.
    pub(super) expressions: Option<Expressions>,
    /// Whether CEL rules are in this subtree.
    pub(super) cel_presence: CelPresence,
}

/// The compiled CEL rules of one node.
#[derive(Debug)]
pub(super) struct Expressions {
    pub(super) compiled: CompiledSchema,
    /// The rules for new objects, if the fast path supports all of them.
    pub(super) fast: Option<Vec<FastCel>>,
    /// Whether any rule uses `oldSelf`.
    pub(super) has_transition_rule: bool,
}

impl Node {
    pub(super) fn new(schema: &Value, at: &mut Vec<String>) -> Result<Self, SchemaError> {
        // Nodes are built and visited recursively: a deep schema would overflow the stack.
        if at.len() > DEPTH_MAX {
            return Err(error(at, "it is nested too deep"));
        }
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let is = |key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
        let is_int_or_string = is("x-kubernetes-int-or-string");
        let kind = if is_int_or_string {
            Some(SchemaType::IntOrString)
        } else {
            text("type").map(|it| kind(it, at)).transpose()?
        };
        let mut node = Self {
            kind,
            is_nullable: is("nullable"),
            preserves_unknown: is("x-kubernetes-preserve-unknown-fields"),
            is_embedded: is("x-kubernetes-embedded-resource"),
            default: schema.get("default").cloned(),
            required: texts(schema.get("required")),
            list: list(schema),
            enum_values: array(schema.get("enum")).to_vec(),
            format: text("format").and_then(format),
            bounds: bounds(schema),
            ..Self::default()
        };
        if let Some(pattern) = text("pattern") {
            let compiled = Regex::new(pattern);
            node.pattern = Some(compiled.map_err(|e| error(at, &format!("pattern: {e}")))?);
        }
        node.add_children(schema, at)?;
        // Structural schemas allow only fixed branches with int-or-string, which the type covers.
        if !is_int_or_string {
            node.all_of = branches(schema, "allOf", at)?;
            node.any_of = branches(schema, "anyOf", at)?;
            node.one_of = branches(schema, "oneOf", at)?;
            node.not = child(schema.get("not"), "not", at)?;
        }
        node.add_expressions(schema, at)?;
        Ok(node)
    }

    fn add_children(&mut self, schema: &Value, at: &mut Vec<String>) -> Result<(), SchemaError> {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            at.push(name.clone());
            let node = Self::new(schema, at)?;
            at.pop();
            self.properties.insert(name.clone(), node);
        }
        self.items = child(schema.get("items"), "items", at)?;
        let additional = schema.get("additionalProperties");
        if additional == Some(&Value::Bool(true)) {
            // `additionalProperties: true` allows any value, so nothing below it is pruned.
            self.preserves_unknown = true;
        } else {
            let additional = additional.filter(|it| it.is_object());
            self.additional = child(additional, "additionalProperties", at)?;
        }
        Ok(())
    }

    fn add_expressions(&mut self, schema: &Value, at: &[String]) -> Result<(), SchemaError> {
        let children = self.properties.values();
        let children = children.chain(self.items.as_deref());
        let mut children = children.chain(self.additional.as_deref());
        if children.any(|it| it.cel_presence == CelPresence::Present) {
            self.cel_presence = CelPresence::Present;
        }
        if array(schema.get("x-kubernetes-validations")).is_empty() {
            return Ok(());
        }
        // kube-cel evaluates the rules of descendants too, and would report them twice.
        let compiled = compile_schema(&without_children(schema));
        if let Some(problem) = compiled.compilation_errors().first() {
            return Err(error(at, &problem.to_string()));
        }
        let mut rules = compiled.validations.iter().flatten();
        let is_about_change = rules.any(|it| it.is_transition_rule);
        self.expressions = Some(Expressions {
            fast: compile_fast(&compiled),
            compiled,
            has_transition_rule: is_about_change,
        });
        self.cel_presence = CelPresence::Present;
        Ok(())
    }
}

impl Node {
    pub(super) fn fast_expression_counts(&self) -> (usize, usize) {
        let own = self.expressions.as_ref();
        let simple = own.is_some_and(|it| it.fast.is_some());
        let below = self.properties.values().chain(self.items.as_deref());
        let below = below.chain(self.additional.as_deref());
        let own = (usize::from(simple), usize::from(own.is_some()));
        below.fold(own, |(simple, all), node| {
            let (more, of) = node.fast_expression_counts();
            (simple.saturating_add(more), all.saturating_add(of))
        })
    }
}

/// The rules for new objects, if the fast path supports all of them.
fn compile_fast(compiled: &CompiledSchema) -> Option<Vec<FastCel>> {
    let all = compiled.validations.iter().flatten();
    // A transition rule applies to a new object only with `optionalOldSelf`.
    let applicable =
        all.filter(|it| !it.is_transition_rule || it.rule.optional_old_self == Some(true));
    applicable
        .map(|it| FastCel::from_expr(it.program.expression()))
        .collect()
}

/// The schema of a node without the rules of its descendants, which are evaluated at their own nodes.
fn without_children(schema: &Value) -> Value {
    fn without(schema: &Value, is_top: bool) -> Value {
        match schema {
            Value::Object(fields) => {
                let remaining = fields
                    .iter()
                    .filter(|(key, _)| is_top || key.as_str() != "x-kubernetes-validations")
                    // Defaults are applied before validation.
                    .filter(|(key, value)| key.as_str() != "default" || value.is_object());
                let remaining = remaining.map(|(key, value)| {
                    let value = match key.as_str() {
                        "x-kubernetes-validations" => value.clone(),
                        _ => without(value, false),
                    };
                    (key.clone(), value)
                });
                Value::Object(remaining.collect())
            }
            Value::Array(items) => items.iter().map(|it| without(it, false)).collect(),
            other => other.clone(),
        }
    }
    without(schema, true)
}

fn error(at: &[String], problem: &str) -> SchemaError {
    SchemaError {
        place: format!(".{}", at.join(".")),
        problem: problem.to_owned(),
    }
}

fn kind(name: &str, at: &[String]) -> Result<SchemaType, SchemaError> {
    Ok(match name {
        "object" => SchemaType::Object,
        "array" => SchemaType::Array,
        "string" => SchemaType::String,
        "integer" => SchemaType::Integer,
        "number" => SchemaType::Number,
        "boolean" => SchemaType::Boolean,
        other => return Err(error(at, &format!("there is no type {other:?}"))),
    })
}

fn format(name: &str) -> Option<Format> {
    match name {
        "int32" => Some(Format::Int32),
        "int64" => Some(Format::Int64),
        "date-time" => Some(Format::DateTime),
        _ => None,
    }
}

fn child(
    schema: Option<&Value>,
    name: &str,
    at: &mut Vec<String>,
) -> Result<Option<Box<Node>>, SchemaError> {
    let Some(schema) = schema else {
        return Ok(None);
    };
    at.push(name.to_owned());
    let node = Node::new(schema, at)?;
    at.pop();
    Ok(Some(Box::new(node)))
}

fn branches(schema: &Value, key: &str, at: &mut Vec<String>) -> Result<Vec<Node>, SchemaError> {
    let all = array(schema.get(key)).iter();
    let nodes = all.map(|branch| {
        at.push(key.to_owned());
        let node = Node::new(branch, at);
        at.pop();
        node
    });
    nodes.collect()
}

fn list(schema: &Value) -> ListType {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(texts(schema.get("x-kubernetes-list-map-keys"))),
        _ => ListType::Atomic,
    }
}

fn bounds(schema: &Value) -> Bounds {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let count = |key: &str| schema.get(key).and_then(Value::as_u64);
    let is = |key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
    Bounds {
        min: number("minimum"),
        max: number("maximum"),
        is_min_exclusive: is("exclusiveMinimum"),
        is_max_exclusive: is("exclusiveMaximum"),
        length: (count("minLength"), count("maxLength")),
        items: (count("minItems"), count("maxItems")),
        properties: (count("minProperties"), count("maxProperties")),
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let all = array(value).iter().filter_map(Value::as_str);
    all.map(str::to_owned).collect()
}
