//! ElasticQuotas by name, by parent quota, and by annotated namespace.

use crate::cluster_view::{ObjectName, QuotaFacts};
use crate::multimap::remove_from;
use std::collections::{BTreeMap, BTreeSet};

/// Sets of objects by a string key.
type ObjectNamesByKey = BTreeMap<String, BTreeSet<ObjectName>>;

/// The names of ElasticQuotas by several keys. Their facts are in the index itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas {
    names: ObjectNamesByKey,
    parents: ObjectNamesByKey,
    namespaces: ObjectNamesByKey,
}

impl Quotas {
    pub(super) fn insert(&mut self, quota: &ObjectName, facts: &QuotaFacts) {
        add_to(&mut self.names, &quota.name, quota);
        add_to(&mut self.parents, &facts.parent, quota);
        for namespace in &facts.namespaces {
            add_to(&mut self.namespaces, namespace, quota);
        }
    }

    pub(super) fn remove(&mut self, quota: &ObjectName, facts: &QuotaFacts) {
        remove_from(&mut self.names, &quota.name, quota);
        remove_from(&mut self.parents, &facts.parent, quota);
        for namespace in &facts.namespaces {
            remove_from(&mut self.namespaces, namespace, quota);
        }
    }

    /// The quotas of this name, by namespace.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &ObjectName> {
        self.names.get(name).into_iter().flatten()
    }

    /// The children of a quota.
    pub(super) fn children(&self, parent: &str) -> impl Iterator<Item = &ObjectName> {
        self.parents.get(parent).into_iter().flatten()
    }

    /// The quotas with this namespace in their annotation.
    pub(super) fn bound_to(&self, namespace: &str) -> impl Iterator<Item = &ObjectName> {
        self.namespaces.get(namespace).into_iter().flatten()
    }
}

fn add_to(map: &mut ObjectNamesByKey, key: &str, quota: &ObjectName) {
    map.entry(key.to_owned()).or_default().insert(quota.clone());
}
