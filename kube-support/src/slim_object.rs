//! Objects decoded without the fields that watches never use.

use crate::resource_of_kind::implement_resource_of_kind;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// An object of kind `K` with the spec and status that the caller decodes. `managedFields` is skipped: when
/// decoded, it takes more memory than the rest of the object.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "Spec: Deserialize<'de> + Default, Status: Deserialize<'de>"))]
pub struct SlimObject<K, Spec = (), Status = ()> {
    #[serde(default, deserialize_with = "deserialize_metadata")]
    /// Name, namespace, labels and resource version; the other fields are unset.
    pub metadata: ObjectMeta,
    #[serde(default)]
    /// The decoded part of the spec.
    pub spec: Spec,
    #[serde(default = "Option::default")]
    /// The decoded part of the status.
    pub status: Option<Status>,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

// Not derived: the derive would require `K: Clone`.
impl<K, Spec: Clone, Status: Clone> Clone for SlimObject<K, Spec, Status> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            spec: self.spec.clone(),
            status: self.status.clone(),
            kind: PhantomData,
        }
    }
}

implement_resource_of_kind!([K: Resource, Spec, Status], SlimObject<K, Spec, Status>);

/// The metadata that stores and watches use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimMetadata {
    name: Option<String>,
    namespace: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    resource_version: Option<String>,
}

fn deserialize_metadata<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ObjectMeta, D::Error> {
    let used = SlimMetadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: used.name,
        namespace: used.namespace,
        labels: used.labels,
        resource_version: used.resource_version,
        ..ObjectMeta::default()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::PartialObjectMeta;

    #[test]
    fn slim_object_keeps_identity_and_drops_the_rest() {
        let pod: SlimObject<PartialObjectMeta<Pod>> = serde_json::from_str(
            r#"{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
                "name": "p", "namespace": "team", "labels": {"a": "b"}, "resourceVersion": "7",
                "uid": "u", "managedFields": [{"manager": "m", "fieldsV1": {"f:metadata": {}}}]}}"#,
        )
        .unwrap();
        let expected = ObjectMeta {
            name: Some("p".to_owned()),
            namespace: Some("team".to_owned()),
            labels: Some([("a".to_owned(), "b".to_owned())].into()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        };
        assert_eq!(*pod.meta(), expected);
    }

    #[test]
    fn slim_object_uses_api_path_of_its_kind() {
        type Meta = SlimObject<PartialObjectMeta<Pod>>;
        assert_eq!(Meta::url_path(&(), None), "/api/v1/pods");
        assert!(Meta::metadata_api());
        assert!(!SlimObject::<Pod>::metadata_api());
    }
}
