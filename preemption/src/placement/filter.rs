//! Where a pod cannot go, whoever leaves.

use super::host::{Host, Taint, TaintEffect};
use super::labels::SymbolTable;
use super::pod::Shape;
use crate::amount::Amount;
use crate::ids::{ResourceId, SymbolId};

/// Why a node is nothing for a pod, whoever leaves it. kube-scheduler calls it `UnschedulableAndUnresolvable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterRejection {
    /// There is no such node.
    NodeNotFound,
    /// It is cordoned.
    Unschedulable,
    /// It does not have the labels that the pod wants.
    SelectorMismatch,
    /// It has a taint that the pod does not tolerate.
    UntoleratedTaint {
        /// The key of the taint.
        key: SymbolId,
    },
    /// The pod asks for more than the node has in all.
    InsufficientAllocatable {
        /// Of which resource.
        resource: ResourceId,
        /// How much it asks for.
        requested: Amount,
        /// How much the node has.
        allocatable: Amount,
    },
}

impl Shape {
    /// Why pods of this shape never go to a node, if they do not; the first of the reasons in the order of
    /// [`Refusal`]. Costs the taints, labels and requests that both have.
    ///
    /// Source: kube-scheduler v1.37, plugins `NodeUnschedulable`, `NodeAffinity`, `TaintToleration`,
    /// `NodeResourcesFit` (`Fits` with nothing requested).
    #[must_use]
    pub fn rejection_by(&self, host: &Host, words: &SymbolTable) -> Option<FilterRejection> {
        if !host.is_present {
            return Some(FilterRejection::NodeNotFound);
        }
        if host.is_unschedulable && !self.tolerates_cordon(words) {
            return Some(FilterRejection::Unschedulable);
        }
        if !self.selects(host, words) {
            return Some(FilterRejection::SelectorMismatch);
        }
        let is_refused = |taint: &&Taint| {
            taint.effect != TaintEffect::PreferNoSchedule
                && !self.tolerations.iter().any(|it| it.tolerates(taint))
        };
        if let Some(taint) = host.taints.iter().find(is_refused) {
            return Some(FilterRejection::UntoleratedTaint { key: taint.key });
        }
        let mut requests = self.requests.iter();
        requests.find_map(|(resource, asked)| {
            let allocatable = host.allocatable.get(*resource);
            let (resource, asked) = (*resource, *asked);
            (asked > allocatable).then_some(FilterRejection::InsufficientAllocatable {
                resource,
                requested: asked,
                allocatable,
            })
        })
    }

    fn selects(&self, host: &Host, words: &SymbolTable) -> bool {
        let is_affine = self.affinity.as_ref().is_none_or(|affinity| {
            let mut terms = affinity.0.iter();
            terms.any(|it| it.matches(&host.labels, &host.fields, words))
        });
        is_affine && self.selector.matches(&host.labels, words)
    }

    /// A cordoned node is as good as one with the taint `node.kubernetes.io/unschedulable:NoSchedule`.
    fn tolerates_cordon(&self, words: &SymbolTable) -> bool {
        self.tolerations.iter().any(|it| {
            let is_key = it
                .key
                .is_none_or(|key| words.text(key) == UNSCHEDULABLE_TAINT);
            let is_value = match it.condition {
                super::pod::TolerationCondition::Exists => true,
                super::pod::TolerationCondition::Equal(value) => words.text(value).is_empty(),
            };
            is_key && is_value && it.effect.is_none_or(|it| it == TaintEffect::NoSchedule)
        })
    }
}

const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
