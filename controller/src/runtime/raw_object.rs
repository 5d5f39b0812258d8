//! Objects from the API server before they are decoded into their kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// An object of any kind as JSON, without managed fields.
#[derive(Clone, Debug)]
pub(super) struct RawObject {
    /// Name, namespace and resource version only.
    pub(super) metadata: ObjectMeta,
    pub(super) value: Value,
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = deserializer.deserialize_map(FieldsVisitor)?;
        let metadata = fields.get("metadata");
        let text = |key| Some(metadata?.get(key)?.as_str()?.to_owned());
        Ok(Self {
            metadata: ObjectMeta {
                name: text("name"),
                namespace: text("namespace"),
                resource_version: text("resourceVersion"),
                ..ObjectMeta::default()
            },
            value: Value::Object(fields),
        })
    }
}

/// Reads the fields of an object.
struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            let value = if key == "metadata" {
                from.next_value_seed(MetadataVisitor)?
            } else {
                from.next_value()?
            };
            fields.insert(key, value);
        }
        Ok(fields)
    }
}

/// Reads metadata without the managed fields: they are half of an object, and are skipped unparsed.
struct MetadataVisitor;

impl<'de> DeserializeSeed<'de> for MetadataVisitor {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            if key == "managedFields" {
                from.next_value::<IgnoredAny>()?;
            } else {
                fields.insert(key, from.next_value()?);
            }
        }
        Ok(Value::Object(fields))
    }
}

impl Resource for RawObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::RawObject;

    #[test]
    fn raw_object_drops_managed_fields() {
        let object: RawObject = serde_json::from_str(
            r#"{"metadata": {"name": "n", "managedFields": [{"manager": "m"}]}, "spec": 7}"#,
        )
        .unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some("n"));
        assert_eq!(object.value["spec"], 7);
        assert!(object.value["metadata"].get("managedFields").is_none());
    }
}
