//! Which pods and nodes a counter of pods counts.

use super::cluster::Cluster;
use super::host::Host;
use super::inter_pod::{PodAffinityTerm, TopologySpread};
use super::labels::Labels;
use super::pod::{Pod, Shape};
use crate::ids::{ShapeId, SymbolId};
use std::collections::BTreeSet;

/// Which pods a counter counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CountedPods<'a> {
    /// Those that all terms select.
    SelectedByAll {
        topology_key: SymbolId,
        terms: &'a [PodAffinityTerm],
    },
    /// Those that a term with this key selects.
    SelectedByAny {
        topology_key: SymbolId,
        terms: &'a [PodAffinityTerm],
    },
    /// Those of these shapes: their anti-affinity selects a kind of pods.
    OfShapes {
        topology_key: SymbolId,
        shapes: BTreeSet<ShapeId>,
    },
    /// Those that a spread constraint of a kind of pods selects.
    Spread {
        constraint: &'a TopologySpread,
        namespace: SymbolId,
        shape: ShapeId,
    },
}

impl CountedPods<'_> {
    /// The domain of a node; `None` if pods on the node are not counted.
    pub(super) fn domain(&self, cluster: &Cluster, host: &Host) -> Option<SymbolId> {
        match self {
            Self::SelectedByAll { topology_key, .. }
            | Self::SelectedByAny { topology_key, .. }
            | Self::OfShapes { topology_key, .. } => host.labels().get(*topology_key),
            Self::Spread {
                constraint, shape, ..
            } => {
                let shape = cluster.shape_of(*shape);
                let domain = host.labels().get(constraint.topology_key);
                domain.filter(|_| is_spread_over(cluster, shape, constraint, host))
            }
        }
    }

    pub(super) fn contains(&self, cluster: &Cluster, pod: &Pod) -> bool {
        let is_selected =
            |it: &PodAffinityTerm| is_selected(cluster, it, pod.namespace(), pod.labels());
        match self {
            Self::SelectedByAll { terms, .. } => terms.iter().all(is_selected),
            Self::SelectedByAny {
                topology_key,
                terms,
            } => {
                let mut terms = terms.iter().filter(|it| it.topology_key == *topology_key);
                terms.any(is_selected)
            }
            Self::OfShapes { shapes, .. } => shapes.contains(&pod.shape()),
            Self::Spread {
                constraint,
                namespace,
                ..
            } => {
                let is_counted = !pod.is_terminating() && pod.namespace() == *namespace;
                let selector = &constraint.selector;
                // As in kube-scheduler (`countPodsMatchSelector`), an empty selector counts no pods.
                is_counted
                    && !selector.is_empty()
                    && selector.matches(pod.labels(), cluster.symbols())
            }
        }
    }
}

/// Whether a term selects pods with these labels.
pub(super) fn is_selected(
    cluster: &Cluster,
    term: &PodAffinityTerm,
    namespace: SymbolId,
    labels: &Labels,
) -> bool {
    let index = cluster.inter_pod();
    index.is_selected(term, namespace, labels, cluster.symbols())
}

/// Whether pods of a shape are spread over the domain of a node.
///
/// Source: kube-scheduler v1.37, `calPreFilterState` and `matchNodeInclusionPolicies`.
fn is_spread_over(
    cluster: &Cluster,
    shape: &Shape,
    constraint: &TopologySpread,
    host: &Host,
) -> bool {
    let mut all = shape.inter_pod.spread.iter();
    let symbols = cluster.symbols();
    all.all(|it| host.labels().get(it.topology_key).is_some())
        && (!constraint.honors_node_affinity || shape.selects(host, symbols))
        && (!constraint.honors_node_taints || shape.untolerated_taint(host).is_none())
}
