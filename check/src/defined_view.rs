//! The cluster view of the checked files: the objects, and the definitions of kinds.

use crate::definitions::DefinitionSet;
use lockkeeper_policies::cluster_view::{ClusterView, Lookup, PriorityClassFacts};
use lockkeeper_policies::index::Index;
use serde_json::Value;

/// The objects and the definitions that rules look up.
pub(crate) struct DefinedView<'a> {
    pub(crate) index: &'a Index,
    pub(crate) definitions: &'a DefinitionSet,
}

impl ClusterView for DefinedView<'_> {
    fn fallback(&self) -> Option<&dyn ClusterView> {
        Some(self.index)
    }

    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        self.index.priority_class(name)
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        self.index.global_default()
    }

    /// Files do not have the definitions of all kinds of a cluster: one that is missing is unknown.
    fn definition(&self, name: &str, kind: &str) -> Lookup<&Value> {
        let found = name
            .split_once('.')
            .and_then(|(_, group)| self.definitions.definition(group, kind));
        found.map_or(Lookup::Unknown, Lookup::Found)
    }
}
