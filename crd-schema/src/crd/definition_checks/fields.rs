//! The fields of `CustomResourceDefinition` with their types, for the decoder.

use crate::crd::base64::{self, Alphabet};
use crate::crd::numbers;
use crate::crd::pruning::join;
use serde_json::{Map, Value};

/// The deepest schema that is decoded.
const DEPTH_MAX: usize = 128;

/// The type of a field.
enum FieldType {
    Text,
    /// A text in base64.
    Bytes,
    Bool,
    Integer,
    /// An integer of 32 bits.
    Int32,
    Number,
    Any,
    TextList,
    AnyList,
    Object(&'static [(&'static str, FieldType)]),
    List(&'static [(&'static str, FieldType)]),
    Schema,
    SchemaList,
    SchemaMap,
    /// A schema or a boolean. Its decoder ignores unknown fields.
    SchemaOrBool,
    /// A schema or a list of schemas. Its decoder ignores unknown fields.
    SchemaOrList,
    /// Schemas or lists of texts by names. Their decoder ignores unknown fields.
    Dependencies,
}

use FieldType::{
    Any, AnyList, Bool, Bytes, Dependencies, Int32, Integer, List, Number, Object, Schema,
    SchemaList, SchemaMap, SchemaOrBool, SchemaOrList, Text, TextList,
};

const DEFINITION: &[(&str, FieldType)] = &[
    ("apiVersion", Text),
    ("kind", Text),
    ("metadata", Any),
    ("spec", Object(SPEC)),
    ("status", Object(STATUS)),
];

const SPEC: &[(&str, FieldType)] = &[
    ("group", Text),
    ("names", Object(NAMES)),
    ("scope", Text),
    ("versions", List(VERSION)),
    ("conversion", Object(CONVERSION)),
    ("preserveUnknownFields", Bool),
];

const NAMES: &[(&str, FieldType)] = &[
    ("plural", Text),
    ("singular", Text),
    ("shortNames", TextList),
    ("kind", Text),
    ("listKind", Text),
    ("categories", TextList),
];

const VERSION: &[(&str, FieldType)] = &[
    ("name", Text),
    ("served", Bool),
    ("storage", Bool),
    ("deprecated", Bool),
    ("deprecationWarning", Text),
    ("schema", Object(&[("openAPIV3Schema", Schema)])),
    ("subresources", Object(SUBRESOURCES)),
    ("additionalPrinterColumns", List(COLUMN)),
    ("selectableFields", List(&[("jsonPath", Text)])),
];

const SUBRESOURCES: &[(&str, FieldType)] = &[
    ("status", Object(&[])),
    (
        "scale",
        Object(&[
            ("specReplicasPath", Text),
            ("statusReplicasPath", Text),
            ("labelSelectorPath", Text),
        ]),
    ),
];

const COLUMN: &[(&str, FieldType)] = &[
    ("name", Text),
    ("type", Text),
    ("format", Text),
    ("description", Text),
    ("priority", Int32),
    ("jsonPath", Text),
];

const CONVERSION: &[(&str, FieldType)] = &[
    ("strategy", Text),
    (
        "webhook",
        Object(&[
            (
                "clientConfig",
                Object(&[
                    ("url", Text),
                    (
                        "service",
                        Object(&[
                            ("namespace", Text),
                            ("name", Text),
                            ("path", Text),
                            ("port", Int32),
                        ]),
                    ),
                    ("caBundle", Bytes),
                ]),
            ),
            ("conversionReviewVersions", TextList),
        ]),
    ),
];

const STATUS: &[(&str, FieldType)] = &[
    ("conditions", AnyList),
    ("acceptedNames", Object(NAMES)),
    ("storedVersions", TextList),
    ("observedGeneration", Integer),
];

const SCHEMA: &[(&str, FieldType)] = &[
    ("id", Text),
    ("$schema", Text),
    ("$ref", Text),
    ("description", Text),
    ("type", Text),
    ("format", Text),
    ("title", Text),
    ("default", Any),
    ("maximum", Number),
    ("exclusiveMaximum", Bool),
    ("minimum", Number),
    ("exclusiveMinimum", Bool),
    ("maxLength", Integer),
    ("minLength", Integer),
    ("pattern", Text),
    ("maxItems", Integer),
    ("minItems", Integer),
    ("uniqueItems", Bool),
    ("multipleOf", Number),
    ("enum", AnyList),
    ("maxProperties", Integer),
    ("minProperties", Integer),
    ("required", TextList),
    ("items", SchemaOrList),
    ("allOf", SchemaList),
    ("oneOf", SchemaList),
    ("anyOf", SchemaList),
    ("not", Schema),
    ("properties", SchemaMap),
    ("additionalProperties", SchemaOrBool),
    ("patternProperties", SchemaMap),
    ("dependencies", Dependencies),
    ("additionalItems", SchemaOrBool),
    ("definitions", SchemaMap),
    (
        "externalDocs",
        Object(&[("description", Text), ("url", Text)]),
    ),
    ("example", Any),
    ("nullable", Bool),
    ("x-kubernetes-preserve-unknown-fields", Bool),
    ("x-kubernetes-embedded-resource", Bool),
    ("x-kubernetes-int-or-string", Bool),
    ("x-kubernetes-list-map-keys", TextList),
    ("x-kubernetes-list-type", Text),
    ("x-kubernetes-map-type", Text),
    ("x-kubernetes-validations", List(RULE)),
];

const RULE: &[(&str, FieldType)] = &[
    ("rule", Text),
    ("message", Text),
    ("messageExpression", Text),
    ("reason", Text),
    ("fieldPath", Text),
    ("optionalOldSelf", Bool),
];

/// Removes unknown fields and nulls from a definition, and returns the paths of unknown fields.
///
/// # Errors
///
/// The path and the expected type if a value has the wrong type, or the schema is nested too deep.
pub(super) fn decode(definition: &mut Map<String, Value>) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    fields(DEFINITION, definition, "", &mut unknown, DEPTH_MAX)?;
    Ok(unknown)
}

fn fields(
    known: &[(&str, FieldType)],
    object: &mut Map<String, Value>,
    path: &str,
    unknown: &mut Vec<String>,
    depth: usize,
) -> Result<(), String> {
    let mut removed = Vec::new();
    for (name, value) in object.iter_mut() {
        let path = join(path, name);
        match known.iter().find(|it| it.0 == name) {
            Some(_) if value.is_null() => removed.push(name.clone()),
            Some((_, kind)) => field(kind, value, &path, unknown, depth)?,
            None => {
                unknown.push(path);
                removed.push(name.clone());
            }
        }
    }
    for name in removed {
        object.remove(&name);
    }
    Ok(())
}

fn field(
    kind: &FieldType,
    value: &mut Value,
    path: &str,
    unknown: &mut Vec<String>,
    depth: usize,
) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("{path}: exceeded max depth"));
    };
    let wrong = |expected: &str| Err(format!("{path}: cannot decode into {expected}"));
    if value.is_null() {
        return Ok(());
    }
    match (kind, value) {
        (Text, Value::String(_))
        | (Bool, Value::Bool(_))
        | (Number, Value::Number(_))
        | (AnyList, Value::Array(_))
        | (Any, _) => Ok(()),
        (Integer, value @ Value::Number(_)) => match value.as_i64() {
            Some(_) => Ok(()),
            None => wrong("int64"),
        },
        (Int32, value @ Value::Number(_)) => match value.as_i64().map(i32::try_from) {
            Some(Ok(_)) => Ok(()),
            _ => wrong("int32"),
        },
        (Bytes, Value::String(text)) => match base64::decode(text, Alphabet::Standard) {
            Some(_) => Ok(()),
            None => wrong("base64"),
        },
        (TextList, Value::Array(items))
            if items.iter().all(|it| it.is_string() || it.is_null()) =>
        {
            Ok(())
        }
        (Object(known), Value::Object(object)) => fields(known, object, path, unknown, depth),
        (kind, value) => composite(kind, value, path, unknown, depth),
    }
}

/// Lists and maps of objects and schemas.
fn composite(
    kind: &FieldType,
    value: &mut Value,
    path: &str,
    unknown: &mut Vec<String>,
    depth: usize,
) -> Result<(), String> {
    match (kind, value) {
        (List(known), Value::Array(items)) => {
            each_item(&Object(known), items, path, unknown, depth)
        }
        (Schema, Value::Object(object)) => fields(SCHEMA, object, path, unknown, depth),
        (SchemaList, Value::Array(items)) => each_item(&Schema, items, path, unknown, depth),
        (SchemaMap, Value::Object(object)) => {
            for (name, item) in object.iter_mut() {
                field(&Schema, item, &join(path, name), unknown, depth)?;
            }
            Ok(())
        }
        (SchemaOrBool, Value::Bool(_)) => Ok(()),
        (SchemaOrBool | SchemaOrList, value @ Value::Object(_)) => {
            field(&Schema, value, path, &mut Vec::new(), depth)
        }
        (SchemaOrList, value @ Value::Array(_)) => {
            field(&SchemaList, value, path, &mut Vec::new(), depth)
        }
        // Its decoder ignores everything else.
        (SchemaOrList, value) => {
            *value = Value::Null;
            Ok(())
        }
        (Dependencies, Value::Object(object)) => {
            for (name, item) in object.iter_mut() {
                let kind = if item.is_array() { TextList } else { Schema };
                field(&kind, item, &join(path, name), &mut Vec::new(), depth)?;
            }
            Ok(())
        }
        _ => Err(format!("{path}: cannot decode into the type of the field")),
    }
}

fn each_item(
    kind: &FieldType,
    items: &mut [Value],
    path: &str,
    unknown: &mut Vec<String>,
    depth: usize,
) -> Result<(), String> {
    for (position, item) in items.iter_mut().enumerate() {
        field(kind, item, &format!("{path}[{position}]"), unknown, depth)?;
    }
    Ok(())
}

/// A whole number of JSON, also if it is written as a float.
pub(super) fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let float = value.as_f64().filter(|it| numbers::is_json_integer(*it))?;
        Some(numbers::truncate(float))
    })
}
