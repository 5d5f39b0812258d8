//! Reads values of the object by their schemas.

use super::value::{Failure, JsonMap, Outcome, Value, error, no_overload};
use crate::cel::reserved_words::RESERVED_WORDS;
use crate::crd::base64::{self, Alphabet};
use crate::crd::formats::time;
use crate::crd::node::{Kind, Node};
use serde_json::Value as Json;
use std::rc::Rc;
use std::sync::LazyLock;

/// The schema of texts, for `apiVersion` and `kind` of a resource.
static TEXT: LazyLock<Option<Node>> = LazyLock::new(|| {
    let schema = serde_json::json!({"type": "string"});
    Node::from_schema(&schema).ok()
});

/// The accessible metadata of a resource.
static METADATA: LazyLock<Option<Node>> = LazyLock::new(|| {
    let text = serde_json::json!({"type": "string"});
    let schema =
        serde_json::json!({"type": "object", "properties": {"name": text, "generateName": text}});
    Node::from_schema(&schema).ok()
});

/// Names of fields that cannot be written in CEL, and how they are escaped.
const ESCAPES: [(&str, &str); 4] = [
    ("__underscores__", "__"),
    ("__dot__", "."),
    ("__dash__", "-"),
    ("__slash__", "/"),
];

impl<'a> Value<'a> {
    /// The value of a part of the object.
    pub(in super::super) fn from_json(
        value: &'a Json,
        schema: &'a Node,
        is_resource: bool,
    ) -> Outcome<'a> {
        if value.is_null() {
            if schema.is_nullable {
                return Ok(Self::Null);
            }
            return error("invalid data, got null for schema with nullable=false");
        }
        if schema.is_int_or_string {
            return match value {
                Json::String(text) => Ok(Self::text(text.as_str())),
                Json::Number(_) if value.as_i64().is_some() => {
                    Ok(Self::Int(value.as_i64().unwrap_or_default()))
                }
                _ => error(
                    "invalid data, expected XIntOrString value to be either a string or integer",
                ),
            };
        }
        match (schema.kind, value) {
            (Some(Kind::Object), Json::Object(fields)) => Ok(Self::JsonMap(JsonMap {
                fields,
                schema,
                is_resource: is_resource || schema.is_embedded,
            })),
            (Some(Kind::Object), _) => {
                error("invalid data, expected a map for the provided schema with type=object")
            }
            (Some(Kind::Array), Json::Array(items)) if schema.items.is_some() => {
                Ok(Self::JsonList(items, schema))
            }
            (Some(Kind::Array), _) => {
                error("invalid data, expected an array for the provided schema with type=array")
            }
            (Some(Kind::String), Json::String(text)) => formatted(text, &schema.format),
            (Some(Kind::Number), Json::Number(number)) => {
                Ok(Self::Double(number.as_f64().unwrap_or_default()))
            }
            (Some(Kind::Integer), Json::Number(number)) => match number.as_i64() {
                Some(integer) => Ok(Self::Int(integer)),
                None => error("invalid data, expected int, got float64"),
            },
            (Some(Kind::Boolean), Json::Bool(flag)) => Ok(Self::Bool(*flag)),
            (Some(kind), _) => error(format!("invalid data, expected {}", kind.name())),
            (None, _) if schema.preserves_unknown_fields => Ok(Self::Preserved(value)),
            (None, _) => error("invalid type"),
        }
    }

    /// The value of JSON without a schema, as Go decodes it. The cost is linear in the size of the JSON.
    pub(in super::super) fn from_untyped(value: &'a Json) -> Self {
        match value {
            Json::Null => Self::Null,
            Json::Bool(flag) => Self::Bool(*flag),
            Json::Number(number) => match number.as_i64() {
                Some(integer) => Self::Int(integer),
                None => Self::Double(number.as_f64().unwrap_or_default()),
            },
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::list(items.iter().map(Self::from_untyped).collect()),
            Json::Object(fields) => {
                let entries = fields
                    .iter()
                    .map(|(name, value)| (Self::text(name.as_str()), Self::from_untyped(value)));
                Self::Map(Rc::new(entries.collect()))
            }
        }
    }

    /// The JSON of a value; `None` if it has none.
    pub(in super::super) fn to_json(&self) -> Option<Json> {
        Some(match self {
            Self::Null => Json::Null,
            Self::Bool(flag) => Json::Bool(*flag),
            Self::Int(number) => (*number).into(),
            Self::Uint(number) => (*number).into(),
            Self::Double(number) => (*number).into(),
            Self::Text(text) => Json::String(text.to_string()),
            Self::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Some((key.as_text()?.to_owned(), value.to_json()?)));
                Json::Object(entries.collect::<Option<_>>()?)
            }
            Self::List(items) => {
                Json::Array(items.iter().map(Self::to_json).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    pub(super) fn item_from_json(value: &'a Json, schema: Option<&'a Node>) -> Outcome<'a> {
        match schema {
            Some(schema) => Self::from_json(value, schema, false),
            None => error("invalid array type"),
        }
    }
}

fn formatted<'a>(text: &'a str, format: &str) -> Outcome<'a> {
    let value = match format {
        "duration" => time::parse_loose_duration(text).map(Value::Duration),
        "date" => time::parse_date(text).map(Value::Time),
        "date-time" => time::parse_date_time(text).map(Value::Time),
        "byte" => base64::decode(text, Alphabet::Url).map(|it| Value::Bytes(Rc::new(it))),
        _ => Some(Value::text(text)),
    };
    match value {
        Some(value) => Ok(value),
        None => error(format!("Invalid {format} formatted string {text}")),
    }
}

/// The name of a field as it is written in the object.
pub(in super::super) fn unescaped(name: &str) -> String {
    let keyword = name.strip_prefix("__").and_then(|it| it.strip_suffix("__"));
    if let Some(keyword) = keyword.filter(|it| RESERVED_WORDS.contains(it)) {
        return keyword.to_owned();
    }
    let mut out = String::new();
    let mut rest = name;
    while let Some(sign) = rest.chars().next() {
        if let Some((escape, plain)) = ESCAPES.iter().find(|it| rest.starts_with(it.0)) {
            out.push_str(plain);
            rest = rest.get(escape.len()..).unwrap_or_default();
        } else {
            out.push(sign);
            rest = rest.get(sign.len_utf8()..).unwrap_or_default();
        }
    }
    out
}

impl<'a> JsonMap<'a> {
    /// Whether the fields are those of a schema, not the entries of a map.
    fn is_object(&self) -> bool {
        self.is_resource || self.schema.has_properties
    }

    pub(super) fn schema_of(&self, name: &str) -> Option<&'a Node> {
        if self.is_resource {
            return match name {
                _ if self.schema.describes_resource() => self.schema.properties.get(name),
                "apiVersion" | "kind" => TEXT.as_ref(),
                "metadata" => METADATA.as_ref(),
                _ => self.schema.properties.get(name),
            };
        }
        if self.schema.has_properties {
            return self.schema.properties.get(name);
        }
        self.schema.additional.as_deref()
    }

    /// The value of a key; `None` if it is not set.
    pub(super) fn find(&self, key: &Value<'a>) -> Result<Option<Value<'a>>, Failure> {
        let Value::Text(name) = key else {
            return no_overload();
        };
        let escaped;
        let name: &str = if self.is_object() {
            escaped = unescaped(name);
            &escaped
        } else {
            name
        };
        let Some(value) = self.fields.get(name) else {
            return Ok(None);
        };
        if self.is_object() && value.is_null() {
            return Ok(None);
        }
        match self.schema_of(name) {
            Some(schema) => Value::from_json(value, schema, false).map(Some),
            None => Ok(None),
        }
    }

    /// The keys that have a schema.
    pub(super) fn keys(&self) -> Vec<Value<'a>> {
        let fields: &'a serde_json::Map<String, Json> = self.fields;
        let known = fields.keys().filter(|it| self.schema_of(it).is_some());
        known.map(|it| Value::text(it.as_str())).collect()
    }
}
