//! ElasticQuotas by name, by the quota that they are below, and by the namespaces that they are for.

use crate::trees::drop_from;
use crate::world::{ObjectName, QuotaFacts};
use std::collections::{BTreeMap, BTreeSet};

/// Objects by some text.
type By = BTreeMap<String, BTreeSet<ObjectName>>;

/// Which quotas there are. What is known of them is kept elsewhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas {
    names: By,
    parents: By,
    namespaces: By,
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
        drop_from(&mut self.names, &quota.name, quota);
        drop_from(&mut self.parents, &facts.parent, quota);
        for namespace in &facts.namespaces {
            drop_from(&mut self.namespaces, namespace, quota);
        }
    }

    /// Those of this name, by namespace.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &ObjectName> {
        self.names.get(name).into_iter().flatten()
    }

    /// Those below this one.
    pub(super) fn below(&self, parent: &str) -> impl Iterator<Item = &ObjectName> {
        self.parents.get(parent).into_iter().flatten()
    }

    /// Those that are for the pods of this namespace by their annotation.
    pub(super) fn bound_to(&self, namespace: &str) -> impl Iterator<Item = &ObjectName> {
        self.namespaces.get(namespace).into_iter().flatten()
    }
}

fn add_to(map: &mut By, key: &str, quota: &ObjectName) {
    map.entry(key.to_owned()).or_default().insert(quota.clone());
}
