//! What pods of a cluster say about the pods around them.

use super::inter_pod::{NamespaceLabels, PodAffinityTerm};
use super::labels::{Labels, SymbolTable};
use super::used_ids::UsedIds;
use crate::ids::{ShapeId, SymbolId};
use std::collections::BTreeMap;

/// The shapes with anti-affinity to other pods, and the labels of namespaces, which terms select.
#[derive(Clone, Debug, Default)]
pub(super) struct InterPodIndex {
    /// How many bound pods have each shape.
    anti_affinity_pods: BTreeMap<ShapeId, usize>,
    namespaces: NamespaceLabels,
}

impl InterPodIndex {
    /// Sets the labels of a namespace. Returns whether they have changed.
    pub(super) fn set_namespace(&mut self, name: SymbolId, labels: Labels) -> bool {
        if labels.is_empty() {
            return self.namespaces.remove(&name).is_some();
        }
        let before = self.namespaces.insert(name, labels);
        before.as_ref() != self.namespaces.get(&name)
    }

    /// Whether a term selects pods with these labels.
    pub(super) fn is_selected(
        &self,
        term: &PodAffinityTerm,
        namespace: SymbolId,
        labels: &Labels,
        symbols: &SymbolTable,
    ) -> bool {
        term.matches(namespace, labels, &self.namespaces, symbols)
    }

    /// Whether a bound pod has anti-affinity to other pods.
    pub(super) fn has_anti_affinity(&self) -> bool {
        !self.anti_affinity_pods.is_empty()
    }

    /// The shapes of bound pods with anti-affinity to other pods.
    pub(super) fn shapes_with_anti_affinity(&self) -> impl Iterator<Item = ShapeId> + '_ {
        self.anti_affinity_pods.keys().copied()
    }

    /// Adds a bound pod with anti-affinity.
    pub(super) fn add(&mut self, shape: ShapeId) {
        let pods = self.anti_affinity_pods.entry(shape).or_default();
        *pods = pods.saturating_add(1);
    }

    /// Removes a bound pod with anti-affinity.
    pub(super) fn remove(&mut self, shape: ShapeId) {
        if let Some(pods) = self.anti_affinity_pods.get_mut(&shape) {
            *pods = pods.saturating_sub(1);
            if *pods == 0 {
                self.anti_affinity_pods.remove(&shape);
            }
        }
    }

    /// Marks the names and labels of namespaces.
    pub(super) fn mark_symbols(&self, used: &mut UsedIds) {
        for (name, labels) in &self.namespaces {
            used.mark_symbol(*name);
            used.mark_labels(labels);
        }
    }
}
