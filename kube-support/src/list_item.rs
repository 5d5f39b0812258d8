//! Objects of a list or watch that are decoded one at a time.
//!
//! An object that cannot be decoded must not make the other objects of its page unreadable: a client that may
//! write one such object could stop each process that lists its kind.

use crate::resource_of_kind::implement_resource_of_kind;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// An object as the API server sent it, with the parts of its metadata that watches use.
///
/// The text is not decoded before [`Self::decode`], so a page of a list is in memory as text, and only one of its
/// objects at a time is decoded. Reading the text needs no recursion: an object may be nested as deep as it likes.
pub struct ListItem<K> {
    /// Name, namespace and resource version; the other fields are unset.
    pub metadata: ObjectMeta,
    text: Box<RawValue>,
    kind: PhantomData<fn() -> K>,
}

impl<K> ListItem<K> {
    /// The object as JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.get()
    }
}

impl<K: DeserializeOwned> ListItem<K> {
    /// Decodes the object.
    ///
    /// # Errors
    ///
    /// If a field has another type than in `K`, or the object is nested more than 127 deep.
    pub fn decode(&self) -> Result<K, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

// Neither is derived: the derive would require the same of `K`.
impl<K> Clone for ListItem<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            text: self.text.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for ListItem<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListItem")
            .field("name", &self.metadata.name)
            .field("namespace", &self.metadata.namespace)
            .finish_non_exhaustive()
    }
}

/// The metadata that is read before the object is decoded; everything else is skipped.
#[derive(Default, Deserialize)]
struct Identified {
    #[serde(default)]
    metadata: Identity,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
}

impl<'de, K> Deserialize<'de> for ListItem<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let identified: Identified =
            serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let identity = identified.metadata;
        Ok(Self {
            metadata: ObjectMeta {
                name: identity.name,
                namespace: identity.namespace,
                resource_version: identity.resource_version,
                ..ObjectMeta::default()
            },
            text,
            kind: PhantomData,
        })
    }
}

implement_resource_of_kind!([K: Resource], ListItem<K>);

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "tests fail by panicking"
    )]

    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::Value;

    fn nested(levels: usize) -> String {
        format!(
            r#"{{"nodes": {}{}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    }

    fn page() -> String {
        format!(
            r#"{{"kind": "PodList", "apiVersion": "v1", "metadata": {{"resourceVersion": "9"}}, "items": [
                {{"metadata": {{"name": "deep", "resourceVersion": "1"}}, "spec": {}}},
                {{"metadata": {{"name": "typed"}}, "spec": {{"hostPID": 7}}}},
                {{"metadata": {{"name": "good", "namespace": "n"}}, "spec": {{"hostname": "h"}}}}]}}"#,
            nested(10_000)
        )
    }

    #[test]
    fn too_deep_item_leaves_its_page_readable() {
        let list: ObjectList<ListItem<Value>> = serde_json::from_str(&page()).unwrap();
        let names = list
            .items
            .iter()
            .map(|it| it.metadata.name.clone().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["deep", "typed", "good"]);
        let decoded = list.items.iter().map(|it| it.decode().is_ok());
        assert_eq!(decoded.collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn item_of_wrong_type_leaves_its_page_readable() {
        let list: ObjectList<ListItem<Pod>> = serde_json::from_str(&page()).unwrap();
        let decoded: Vec<_> = list.items.iter().map(|it| it.decode().ok()).collect();
        // Unknown fields are skipped without recursion.
        assert!(decoded[0].is_some() && decoded[1].is_none());
        let good = decoded[2].as_ref().unwrap();
        assert_eq!(good.metadata.namespace.as_deref(), Some("n"));
    }

    #[test]
    fn undecodable_item_is_an_event_of_its_watch() {
        let line = format!(
            r#"{{"type": "ADDED", "object": {{"metadata": {{"name": "deep"}}, "spec": {}}}}}"#,
            nested(200)
        );
        let event: WatchEvent<ListItem<Value>> = serde_json::from_str(&line).unwrap();
        let WatchEvent::Added(item) = event else {
            unreachable!("{line}");
        };
        assert_eq!(item.metadata.name.as_deref(), Some("deep"));
        assert!(item.decode().is_err());
    }
}
