//! The keys that a watch has reported, and the decoding of its objects.

use crate::job_adapters::{JobKinds, TemplateSource};
use crate::{Change, Input, Kind, ObjectKey};
use arc_swap::ArcSwap;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use lockkeeper_kube_support::list_item::ListItem;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The objects of all watches, still as text.
pub(super) type Item = ListItem<DynamicObject>;

/// The keys that a watch has reported: an object missing from a new list was deleted.
pub(super) struct ListedKeys {
    /// The largest spec of a job, in bytes.
    job_spec_max_bytes: usize,
    /// The kinds of jobs, for the objects that arrive from now on.
    pub(super) job_kinds: Arc<ArcSwap<JobKinds>>,
    /// With the newest resource version that was reported.
    reported: BTreeMap<ObjectKey, u64>,
    listing: BTreeSet<ObjectKey>,
    /// Whether a list was completed.
    pub(super) was_listed: bool,
}

impl ListedKeys {
    /// No key is reported yet.
    pub(super) fn new(job_spec_max_bytes: usize, job_kinds: Arc<ArcSwap<JobKinds>>) -> Self {
        Self {
            job_spec_max_bytes,
            job_kinds,
            reported: BTreeMap::new(),
            listing: BTreeSet::new(),
            was_listed: false,
        }
    }

    /// The deletions of all reported objects.
    pub(super) fn delete_all(&mut self, kind: Kind) -> Vec<Input> {
        let names = std::mem::take(&mut self.reported).into_keys();
        names.map(|name| Input::deleted(kind, name)).collect()
    }

    /// The inputs of a watch event.
    pub(super) fn handle_event(&mut self, kind: Kind, event: Event<Item>) -> Vec<Input> {
        match event {
            Event::Init => {
                self.listing.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                let version = version(&object);
                // Counts as reported even if this list is never completed.
                let before = self.reported.insert(name.clone(), version);
                self.listing.insert(name.clone());
                let mut inputs = self.decode(kind, name, &object);
                // A list is newer than all events before it, unless the API server's storage went back.
                if before.is_some_and(|before| version < before) {
                    inputs.insert(0, Input::Restored(kind));
                }
                inputs
            }
            Event::InitDone => {
                // The watch may have missed deletions while it was broken.
                let listing = std::mem::take(&mut self.listing);
                self.was_listed = true;
                let mut inputs = Vec::new();
                self.reported.retain(|name, _| {
                    let is_listed = listing.contains(name);
                    if !is_listed {
                        inputs.push(Input::deleted(kind, name.clone()));
                    }
                    is_listed
                });
                inputs.push(Input::Listed(kind));
                inputs
            }
            Event::Apply(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                self.reported.insert(name.clone(), version(&object));
                self.decode(kind, name, &object)
            }
            Event::Delete(object) => {
                let name = ObjectKey::from_metadata(&object.metadata);
                self.reported.remove(&name);
                vec![Input::deleted(kind, name)]
            }
        }
    }

    /// Decodes one object. Managed fields are half of an object, and are skipped.
    ///
    /// A job with a large spec is decoded without its pod templates, so that it gets no workload and stays suspended.
    fn decode(&self, kind: Kind, name: ObjectKey, object: &Item) -> Vec<Input> {
        let mut value = match serde_json::from_str::<Value>(object.text()) {
            Ok(value) => value,
            Err(error) => return vec![Input::Unreadable(kind, name, error.to_string())],
        };
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let kinds = self.job_kinds.load();
        let mut input = Input::applied_with(&kinds, kind, name.clone(), value);
        let spec_bytes = spec_bytes(object);
        let max = self.job_spec_max_bytes;
        if let Input::Job(_, Change::Applied(job)) = &mut input
            && spec_bytes > max
        {
            job.template_source = TemplateSource::TooLarge;
            let error = format!(
                "the spec has {spec_bytes} bytes, and the limit is {max}; move data to a ConfigMap"
            );
            return vec![input, Input::Unreadable(kind, name, error)];
        }
        vec![input]
    }
}

/// The resource version of an object; 0 if it has none.
fn version(object: &Item) -> u64 {
    let version = object.metadata.resource_version.as_deref();
    version.and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// The size of the spec of an object, in bytes.
fn spec_bytes(object: &Item) -> usize {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow)]
        spec: Option<&'a RawValue>,
    }
    let parts = serde_json::from_str::<Parts<'_>>(object.text()).ok();
    let spec = parts.and_then(|it| it.spec);
    spec.map_or(0, |it| it.get().len())
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use serde_json::json;

    pub(in crate::runtime) const MAX: usize = 1_000;

    fn object(name: &str, spec: &Value) -> Item {
        let value = json!({
            "metadata": {"name": name, "namespace": "n"}, "spec": spec,
        });
        serde_json::from_value(value).unwrap()
    }

    pub(in crate::runtime) fn queue(name: &str) -> Item {
        object(name, &json!({"clusterQueue": "q"}))
    }

    pub(in crate::runtime) fn describe(inputs: &[Input]) -> Vec<String> {
        let one = |input: &Input| match input {
            Input::LocalQueue(Change::Applied(it)) => {
                format!("seen {}", it.metadata.name.as_deref().unwrap_or_default())
            }
            Input::LocalQueue(Change::Deleted(name)) => format!("gone {}", name.name()),
            Input::Listed(_) => "listed".to_owned(),
            Input::Restored(_) => "restored".to_owned(),
            Input::Unreadable(_, name, _) => format!("unreadable {}", name.name()),
            _ => "?".to_owned(),
        };
        inputs.iter().map(one).collect()
    }

    #[test]
    fn relist_without_object_deletes_it() {
        let mut names = ListedKeys::new(MAX, Arc::default());
        let mut take = |event| describe(&names.handle_event(Kind::LocalQueue, event));
        assert_eq!(take(Event::Init), [""; 0]);
        assert_eq!(take(Event::InitApply(queue("a"))), ["seen a"]);
        assert_eq!(take(Event::InitApply(queue("b"))), ["seen b"]);
        assert_eq!(take(Event::InitDone), ["listed"]);
        assert_eq!(take(Event::Apply(queue("c"))), ["seen c"]);
        assert_eq!(take(Event::Delete(queue("b"))), ["gone b"]);
        take(Event::Init);
        take(Event::InitApply(queue("a")));
        take(Event::InitApply(queue("d")));
        // A new list: an object that was reported before and is not in the list was deleted.
        take(Event::Init);
        take(Event::InitApply(queue("c")));
        assert_eq!(take(Event::InitDone), ["gone a", "gone d", "listed"]);
    }

    #[test]
    fn unreadable_object_is_reported_and_blocks_no_other() {
        let mut names = ListedKeys::new(MAX, Arc::default());
        let broken = object("x", &json!({"clusterQueue": 7}));
        let inputs = names.handle_event(Kind::LocalQueue, Event::Apply(broken));
        assert_eq!(describe(&inputs), ["unreadable x"]);
    }

    #[test]
    fn too_deep_object_is_unreadable_and_blocks_no_other() {
        let mut names = ListedKeys::new(MAX, Arc::default());
        let depth = 200;
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text =
            format!(r#"{{"metadata": {{"name": "deep", "namespace": "n"}}, "spec": {nested}}}"#);
        let deep: Item = serde_json::from_str(&text).unwrap();
        let mut take = |event| describe(&names.handle_event(Kind::LocalQueue, event));
        take(Event::Init);
        assert_eq!(take(Event::InitApply(deep)), ["unreadable deep"]);
        assert_eq!(take(Event::InitApply(queue("a"))), ["seen a"]);
        assert_eq!(take(Event::InitDone), ["listed"]);
    }

    #[test]
    fn job_with_too_large_spec_is_reported_and_has_no_templates() {
        let mut names = ListedKeys::new(MAX, Arc::default());
        let job = |bytes| {
            let data = json!([{"name": "c", "image": "a".repeat(bytes)}]);
            object("j", &json!({"template": {"spec": {"containers": data}}}))
        };
        for (bytes, is_large) in [(MAX, true), (MAX / 2, false)] {
            let inputs = names.handle_event(Kind::Job(0), Event::Apply(job(bytes)));
            let [Input::Job(_, Change::Applied(view)), reports @ ..] = &inputs[..] else {
                unreachable!("{inputs:?}");
            };
            assert_eq!(view.template_source == TemplateSource::TooLarge, is_large);
            let reported = describe(reports);
            assert_eq!(reported == ["unreadable j"], is_large, "{reported:?}");
        }
    }

    #[test]
    fn list_with_older_version_than_reported_restores_kind() {
        let at = |version: u64| {
            let value = json!({
                "metadata": {"name": "a", "namespace": "n", "resourceVersion": version.to_string()},
                "spec": {"clusterQueue": "q"},
            });
            serde_json::from_value::<Item>(value).unwrap()
        };
        let mut names = ListedKeys::new(MAX, Arc::default());
        let mut take = |event| describe(&names.handle_event(Kind::LocalQueue, event));
        take(Event::Init);
        assert_eq!(take(Event::InitApply(at(5))), ["seen a"]);
        assert_eq!(take(Event::Apply(at(9))), ["seen a"]);
        take(Event::Init);
        assert_eq!(take(Event::InitApply(at(9))), ["seen a"]);
        take(Event::Init);
        assert_eq!(take(Event::InitApply(at(5))), ["restored", "seen a"]);
        assert_eq!(take(Event::Apply(at(6))), ["seen a"]);
    }
}
