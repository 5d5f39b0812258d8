//! Objects as they come from the API server: read as far as they can be.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;

/// An object of any kind, whatever stands in it. Who wrote which of its fields is left out.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) metadata: ObjectMeta,
    pub(super) value: Value,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata {
            metadata.remove("managedFields");
        }
        let metadata = value.get("metadata").cloned().unwrap_or_default();
        let metadata = ObjectMeta::deserialize(metadata).map_err(D::Error::custom)?;
        Ok(Self { metadata, value })
    }
}

impl Resource for Object {
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

    use super::Object;

    #[test]
    fn any_object_is_read_without_its_managed_fields() {
        let object: Object = serde_json::from_str(
            r#"{"metadata": {"name": "n", "managedFields": [{"manager": "m"}]}, "spec": 7}"#,
        )
        .unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some("n"));
        assert_eq!(object.value["spec"], 7);
        assert!(object.value["metadata"].get("managedFields").is_none());
    }
}
