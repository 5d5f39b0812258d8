//! The specs of queues, cohorts, flavors and classes: an update of a status is no change.

use crate::change::ObjectKind;
use lockkeeper_explain::KueueObject;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The decision-relevant part of each object, as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueObjects {
    specs: BTreeMap<(ObjectKind, String), String>,
}

impl QueueObjects {
    /// Records an object; false if no decision depends on its change.
    pub(crate) fn update(&mut self, kind: ObjectKind, name: &str, object: &KueueObject) -> bool {
        let spec = spec_text(object);
        let key = (kind, name.to_owned());
        if self.specs.get(&key) == Some(&spec) {
            return false;
        }
        self.specs.insert(key, spec);
        true
    }

    /// Forgets an object.
    pub(crate) fn remove(&mut self, kind: ObjectKind, name: &str) {
        self.specs.remove(&(kind, name.to_owned()));
    }
}

fn spec_text(object: &KueueObject) -> String {
    fn text(of: &impl Debug) -> String {
        format!("{of:?}")
    }
    match object {
        KueueObject::ClusterQueue(it) => text(&(&it.spec, &it.metadata.deletion_timestamp)),
        KueueObject::Cohort(it) => text(&it.spec),
        KueueObject::ResourceFlavor(it) => text(&it.spec),
        KueueObject::LocalQueue(it) => text(&it.spec),
        KueueObject::PriorityClass(it) => text(&(it.value, it.global_default)),
        KueueObject::Namespace(it) => text(&it.metadata.labels),
        KueueObject::LimitRange(it) => text(&it.spec),
        KueueObject::RuntimeClass(it) => text(&it.overhead),
        KueueObject::Workload(_) => String::new(),
    }
}
