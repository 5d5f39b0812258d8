//! Applies a partial object to an object, as the merge of `sigs.k8s.io/structured-merge-diff`.

use crate::builtin::{BuiltInKind, BuiltInType, Relation};
use crate::crd::values::{text_at, texts_at};
use serde_json::{Map, Value};

/// How values of a kind are merged.
#[derive(Clone, Copy, Debug)]
pub enum MergeTypes<'a> {
    /// As those of a built-in kind.
    BuiltIn(BuiltInKind),
    /// By the `openAPIV3Schema` of a definition.
    Schema(&'a Value),
    /// The kind is not known: partial objects cannot be applied.
    Unknown,
}

/// The type of a value.
#[derive(Clone, Copy)]
enum MergeType<'a> {
    Root(BuiltInKind),
    BuiltIn(BuiltInType),
    Schema(&'a Value),
    /// Without a schema: lists are atomic, maps are merged.
    Untyped,
}

/// Applies a partial object. `None` if the kind is not known.
///
/// # Errors
///
/// If the partial object has unknown fields or atomic values.
pub(super) fn apply(
    types: MergeTypes<'_>,
    object: &Value,
    partial: &Value,
) -> Result<Option<Value>, String> {
    let root = match types {
        MergeTypes::BuiltIn(kind) => MergeType::Root(kind),
        MergeTypes::Schema(schema) => MergeType::Schema(schema),
        MergeTypes::Unknown => return Ok(None),
    };
    let mut atomics = Vec::new();
    check(root, partial, "", &mut atomics)
        .map_err(|reason| format!("failed to convert patch object to typed object: {reason}"))?;
    if !atomics.is_empty() {
        let atomics = atomics.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        ));
    }
    Ok(Some(merged(root, Some(object), partial)))
}

/// Collects the atomic values of a partial object. Errors for a field that the type does not have.
fn check(
    kind: MergeType<'_>,
    value: &Value,
    path: &str,
    atomics: &mut Vec<String>,
) -> Result<(), String> {
    let is_atomic = kind.relation() == Relation::Atomic;
    match value {
        Value::Object(fields) => {
            if is_atomic && !matches!(kind, MergeType::Untyped) {
                atomics.push(path.to_owned());
            }
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                let Some(below) = kind.field(name) else {
                    return Err(format!("{path}: field not declared in schema"));
                };
                check(below, value, &path, atomics)?;
            }
        }
        Value::Array(items) => {
            if is_atomic {
                atomics.push(path.to_owned());
            }
            for (position, item) in items.iter().enumerate() {
                if let Relation::Keys(keys) = kind.relation()
                    && key_of(&keys, item).is_none()
                {
                    return Err(format!(
                        "{path}: element {position}: associative list with keys has an element that omits a key field"
                    ));
                }
                check(kind.items(), item, &format!("{path}[{position}]"), atomics)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn merged(kind: MergeType<'_>, old: Option<&Value>, new: &Value) -> Value {
    match (old, new) {
        (Some(Value::Object(old)), Value::Object(new)) if kind.relation() != Relation::Atomic => {
            let mut out = old.clone();
            for (name, value) in new {
                let below = kind.field(name).unwrap_or(MergeType::Untyped);
                out.insert(name.clone(), merged(below, old.get(name), value));
            }
            Value::Object(out)
        }
        (Some(Value::Array(old)), Value::Array(new)) => Value::Array(merged_list(kind, old, new)),
        _ => new.clone(),
    }
}

/// Merges lists in the order of both: an item of the old list stays before the items that follow it there.
fn merged_list(kind: MergeType<'_>, old: &[Value], new: &[Value]) -> Vec<Value> {
    let relation = kind.relation();
    let key = |item: &Value| match &relation {
        Relation::Keys(keys) => key_of(keys, item).map(Value::Array),
        _ => Some(item.clone()),
    };
    if matches!(relation, Relation::Atomic | Relation::Merged) {
        return new.to_vec();
    }
    let old_keys: Vec<_> = old.iter().map(key).collect();
    let new_keys: Vec<_> = new.iter().map(key).collect();
    let of_old = |wanted: &Option<Value>| {
        let at = old_keys.iter().position(|it| it == wanted);
        at.and_then(|at| old.get(at))
    };
    // The items of both lists, in the order of the new one.
    let mut shared = new_keys.iter().filter(|it| old_keys.contains(it));
    let mut next = shared.next();
    let (mut left, mut right) = (0_usize, 0_usize);
    let mut out = Vec::with_capacity(old.len().saturating_add(new.len()));
    let mut taken: Vec<&Option<Value>> = Vec::new();
    while left < old.len() || right < new.len() {
        let (left_key, right_key) = (old_keys.get(left), new_keys.get(right));
        if let (Some(left_key), Some(right_key)) = (left_key, right_key)
            && left_key != right_key
            && new_keys.contains(left_key)
            && next.is_some_and(|it| it != left_key)
        {
            // Shared, but its turn is later.
            left = left.saturating_add(1);
            continue;
        }
        if let (Some(key), Some(item)) = (left_key, old.get(left))
            && Some(key) != right_key
        {
            if !new_keys.contains(key) {
                out.push(item.clone());
                left = left.saturating_add(1);
                continue;
            }
            if taken.contains(&key) {
                left = left.saturating_add(1);
            }
        }
        if let (Some(key), Some(item)) = (right_key, new.get(right)) {
            out.push(merged(kind.items(), of_old(key), item));
            taken.push(key);
            right = right.saturating_add(1);
            if Some(key) == left_key {
                left = left.saturating_add(1);
            }
            if next == Some(key) {
                next = shared.next();
            }
        }
    }
    out
}

/// The values of the keys of an item; `None` if one has no value and no default.
fn key_of(keys: &[String], item: &Value) -> Option<Vec<Value>> {
    let values = keys.iter().map(|key| match (item.get(key), key.as_str()) {
        (Some(value), _) => Some(value.clone()),
        // The only key with a default.
        (None, "protocol") => Some("TCP".into()),
        (None, _) => None,
    });
    values.collect()
}

impl<'a> MergeType<'a> {
    /// The type of a field; `None` if the type does not have it.
    fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Untyped => Some(Self::Untyped),
            Self::Root(_) if matches!(name, "apiVersion" | "kind") => Some(Self::Untyped),
            Self::Root(kind) => BuiltInType::of_field(&kind, name).map(Self::BuiltIn),
            Self::BuiltIn(kind) if kind.is_any() => Some(Self::Untyped),
            Self::BuiltIn(kind) => kind.field(name).map(Self::BuiltIn),
            Self::Schema(schema) => Self::schema_field(schema, name),
        }
    }

    fn schema_field(schema: &'a Value, name: &str) -> Option<Self> {
        let properties = schema.get("properties").and_then(Value::as_object);
        if let Some(found) = properties.and_then(|it: &Map<String, Value>| it.get(name)) {
            return Some(Self::Schema(found));
        }
        if let Some(found) = schema.get("additionalProperties") {
            return Some(match found {
                Value::Object(_) => Self::Schema(found),
                _ => Self::Untyped,
            });
        }
        let preserves = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&true.into());
        // The API server adds the metadata of every object.
        let is_own = matches!(name, "apiVersion" | "kind" | "metadata");
        let is_open = preserves || is_own || schema.get("properties").is_none();
        is_open.then_some(Self::Untyped)
    }

    fn items(self) -> Self {
        match self {
            Self::BuiltIn(kind) => kind.items().map_or(Self::Untyped, Self::BuiltIn),
            Self::Schema(schema) => schema.get("items").map_or(Self::Untyped, Self::Schema),
            Self::Root(_) | Self::Untyped => Self::Untyped,
        }
    }

    fn relation(self) -> Relation {
        match self {
            Self::Root(_) => Relation::Merged,
            Self::BuiltIn(kind) if kind.is_any() => Relation::Merged,
            Self::BuiltIn(kind) => kind.relation(),
            // The relation of a list; maps are merged.
            Self::Untyped => Relation::Atomic,
            Self::Schema(schema) => match text_at(schema, "type") {
                Some("array") => match text_at(schema, "x-kubernetes-list-type") {
                    Some("set") => Relation::Set,
                    Some("map") => Relation::Keys(texts_at(schema, "x-kubernetes-list-map-keys")),
                    _ => Relation::Atomic,
                },
                _ if text_at(schema, "x-kubernetes-map-type") == Some("atomic") => Relation::Atomic,
                _ => Relation::Merged,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MergeTypes, apply};
    use crate::builtin::BuiltInKind;
    use serde_json::{Value, json};

    fn applied(partial: &Value) -> Result<Value, String> {
        let pod = json!({
            "metadata": {"labels": {"a": "1"}, "finalizers": ["x", "y"]},
            "spec": {
                "containers": [{"name": "a", "image": "a", "env": [{"name": "A", "value": "1"}]}, {"name": "b"}],
                "nodeSelector": {"zone": "z"},
            },
        });
        let kind = BuiltInKind::find("v1", "Pod").unwrap();
        apply(MergeTypes::BuiltIn(kind), &pod, partial).map(Option::unwrap)
    }

    #[test]
    fn partial_objects_are_merged_by_the_types_of_their_fields() {
        let merged =
            applied(&json!({"metadata": {"labels": {"b": "2"}, "finalizers": ["z", "x"]}}))
                .unwrap();
        assert_eq!(merged["metadata"]["labels"], json!({"a": "1", "b": "2"}));
        assert_eq!(merged["metadata"]["finalizers"], json!(["z", "x", "y"]));
        let merged = applied(&json!({"spec": {"containers": [
            {"name": "c", "image": "c"}, {"name": "a", "env": [{"name": "B", "value": "2"}]},
        ]}}));
        let expected = json!([
            {"name": "c", "image": "c"},
            {"name": "a", "image": "a", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "b"},
        ]);
        assert_eq!(merged.unwrap()["spec"]["containers"], expected);
        for (partial, reason) in [
            (
                json!({"spec": {"nodeSelector": {"zone": "y"}}}),
                "may not mutate atomic arrays, maps or structs: .spec.nodeSelector",
            ),
            (
                json!({"spec": {"containers": [{"name": "a", "args": ["x"]}]}}),
                ".spec.containers[0].args",
            ),
            (
                json!({"spec": {"colour": "red"}}),
                ".spec.colour: field not declared in schema",
            ),
            (
                json!({"spec": {"containers": [{"image": "a"}]}}),
                "omits a key field",
            ),
        ] {
            let error = applied(&partial).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn custom_resources_are_merged_by_their_schema() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "parts": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "integer"}}},
        }}}});
        let object = json!({"spec": {"parts": [{"name": "a", "size": 1}]}});
        let types = MergeTypes::Schema(&schema);
        let partial = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"parts": [{"name": "a", "size": 2}], "free": {"x": 1}}});
        let expected = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"parts": [{"name": "a", "size": 2}], "free": {"x": 1}}});
        assert_eq!(apply(types, &object, &partial), Ok(Some(expected)));
        assert!(apply(types, &object, &json!({"spec": {"whole": {"a": 1}}})).is_err());
        assert!(apply(types, &object, &json!({"spec": {"other": 1}})).is_err());
    }
}
