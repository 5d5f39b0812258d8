//! What a pod requires of the pods around it: pod affinity, pod anti-affinity and topology spread.
//!
//! A *topology domain* is the set of nodes with one value of a node label, the topology key.

use super::labels::{Labels, Selector, SymbolTable};
use crate::ids::SymbolId;
use std::collections::BTreeMap;

/// The labels of each namespace.
pub(super) type NamespaceLabels = BTreeMap<SymbolId, Labels>;

/// The required constraints of a pod on the pods around it. Preferred terms only change scores in kube-scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InterPodConstraints {
    /// Required pod affinity: a domain must have a pod that matches all terms.
    pub affinity: Box<[PodAffinityTerm]>,
    /// Required pod anti-affinity: no domain may have a pod that matches a term.
    pub anti_affinity: Box<[PodAffinityTerm]>,
    /// Topology spread constraints with `whenUnsatisfiable: DoNotSchedule`.
    pub spread: Box<[TopologySpread]>,
}

impl InterPodConstraints {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.affinity.is_empty() && self.anti_affinity.is_empty() && self.spread.is_empty()
    }

    /// The terms of affinity and anti-affinity.
    pub(super) fn terms(&self) -> impl Iterator<Item = &PodAffinityTerm> {
        self.affinity.iter().chain(&self.anti_affinity)
    }
}

/// Selects pods, and the node label whose values are the domains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodAffinityTerm {
    /// The node label.
    pub topology_key: SymbolId,
    /// The namespaces of the pods. The caller adds that of the pod with the term, if the term names none.
    pub namespaces: Box<[SymbolId]>,
    /// The labels of further namespaces; an empty selector selects all of them.
    pub namespace_selector: Option<Selector>,
    /// The labels of the pods.
    pub selector: Selector,
}

impl PodAffinityTerm {
    /// Whether the term selects a pod with these labels.
    ///
    /// Source: kube-scheduler v1.37, `AffinityTerm.Matches`.
    pub(super) fn matches(
        &self,
        namespace: SymbolId,
        labels: &Labels,
        namespaces: &NamespaceLabels,
        symbols: &SymbolTable,
    ) -> bool {
        let is_selected = |selector: &Selector| {
            // A namespace that is not known has no labels.
            let labels = namespaces.get(&namespace);
            labels.map_or_else(
                || selector.matches(&Labels::default(), symbols),
                |it| selector.matches(it, symbols),
            )
        };
        let is_in_namespace = self.namespaces.contains(&namespace)
            || self.namespace_selector.as_ref().is_some_and(is_selected);
        is_in_namespace && self.selector.matches(labels, symbols)
    }
}

/// A topology spread constraint: how much the numbers of matching pods in two domains may differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopologySpread {
    /// The node label.
    pub topology_key: SymbolId,
    /// The labels of the pods that count, in the namespace of the pod; none do for an empty selector.
    pub selector: Selector,
    /// The maximum difference to the domain with the fewest matching pods.
    pub max_skew: i64,
    /// With fewer domains, the fewest matching pods are zero.
    pub min_domains: usize,
    /// Whether only nodes count that match the pod's node selector and affinity (`nodeAffinityPolicy: Honor`).
    pub honors_node_affinity: bool,
    /// Whether only nodes count whose taints the pod tolerates (`nodeTaintsPolicy: Honor`).
    pub honors_node_taints: bool,
}

/// Why a node is infeasible for a pod because of other pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum InterPodRejection {
    /// The node does not have the topology key of a spread constraint.
    MissingTopologyKey {
        /// The key.
        key: SymbolId,
    },
    /// The domain of the node would have too many matching pods.
    TopologySpread {
        /// The topology key.
        key: SymbolId,
    },
    /// The domain of the node has no pod that the pod's affinity selects.
    Affinity,
    /// The domain of the node has a pod that the pod's anti-affinity selects.
    AntiAffinity,
    /// A pod in the domain of the node has an anti-affinity that selects the pod.
    ExistingAntiAffinity,
}
