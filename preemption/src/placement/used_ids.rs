//! The ids that are in use, so that all others can be used again.

use super::host::Host;
use super::inter_pod::InterPodConstraints;
use super::labels::{Labels, Requirement, Selector};
use super::pod::{Shape, TolerationCondition};
use crate::ids::{HostId, ShapeId, SymbolId};

/// The ids that an owner outside of the cluster stores. [`super::Cluster::release_unused`] keeps them.
#[derive(Clone, Debug, Default)]
pub struct UsedIds {
    symbols: Marks,
    shapes: Marks,
    hosts: Marks,
}

impl UsedIds {
    /// Marks an interned string.
    pub fn mark_symbol(&mut self, symbol: SymbolId) {
        self.symbols.mark(symbol.index());
    }

    /// Marks a shape.
    pub fn mark_shape(&mut self, shape: ShapeId) {
        self.shapes.mark(shape.index());
    }

    /// Marks a node.
    pub fn mark_host(&mut self, host: HostId) {
        self.hosts.mark(host.index());
    }

    /// Marks the keys and values of labels.
    pub fn mark_labels(&mut self, labels: &Labels) {
        for (key, value) in labels.pairs() {
            self.mark_symbol(*key);
            self.mark_symbol(*value);
        }
    }

    /// Marks the keys and values of a selector.
    pub fn mark_selector(&mut self, selector: &Selector) {
        self.mark_requirements(&selector.0);
    }

    pub(super) fn has_symbol(&self, symbol: SymbolId) -> bool {
        self.symbols.has(symbol.index())
    }

    pub(super) fn has_shape(&self, shape: ShapeId) -> bool {
        self.shapes.has(shape.index())
    }

    pub(super) fn has_host(&self, host: HostId) -> bool {
        self.hosts.has(host.index())
    }

    /// Marks the strings of a shape.
    pub(super) fn mark_shape_symbols(&mut self, shape: &Shape) {
        self.mark_selector(&shape.selector);
        let terms = shape.affinity.iter().flat_map(|it| &it.0);
        for term in terms {
            self.mark_requirements(&term.labels);
            self.mark_requirements(&term.fields);
        }
        self.mark_inter_pod_symbols(&shape.inter_pod);
        for toleration in &shape.tolerations {
            if let Some(key) = toleration.key {
                self.mark_symbol(key);
            }
            if let TolerationCondition::Equal(value) = toleration.condition {
                self.mark_symbol(value);
            }
        }
    }

    fn mark_inter_pod_symbols(&mut self, constraints: &InterPodConstraints) {
        for term in constraints.terms() {
            self.mark_symbol(term.topology_key);
            for namespace in &term.namespaces {
                self.mark_symbol(*namespace);
            }
            if let Some(selector) = &term.namespace_selector {
                self.mark_selector(selector);
            }
            self.mark_selector(&term.selector);
        }
        for constraint in &constraints.spread {
            self.mark_symbol(constraint.topology_key);
            self.mark_selector(&constraint.selector);
        }
    }

    /// Marks the strings of a node.
    pub(super) fn mark_host_symbols(&mut self, host: &Host) {
        self.mark_labels(&host.labels);
        self.mark_labels(&host.fields);
        for taint in &host.taints {
            self.mark_symbol(taint.key);
            self.mark_symbol(taint.value);
        }
    }

    fn mark_requirements(&mut self, requirements: &[Requirement]) {
        for requirement in requirements {
            self.mark_symbol(requirement.key);
            for value in requirement.values() {
                self.mark_symbol(*value);
            }
        }
    }
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
struct Marks(Vec<bool>);

impl Marks {
    fn mark(&mut self, index: usize) {
        if self.0.len() <= index {
            self.0.resize(index.saturating_add(1), false);
        }
        if let Some(slot) = self.0.get_mut(index) {
            *slot = true;
        }
    }

    fn has(&self, index: usize) -> bool {
        self.0.get(index).copied().unwrap_or_default()
    }
}
