//! Node filters that preemption cannot change.

use super::host::{Host, Taint, TaintEffect};
use super::labels::SymbolTable;
use super::pod::Shape;
use crate::amount::Amount;
use crate::ids::{ResourceId, SymbolId};

/// Why a node is infeasible for a pod even without other pods (`UnschedulableAndUnresolvable` in kube-scheduler).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterRejection {
    /// The node does not exist.
    NodeNotFound,
    /// The node is cordoned.
    Unschedulable,
    /// The node does not match the pod's selector or affinity.
    SelectorMismatch,
    /// The node has a taint that the pod does not tolerate.
    UntoleratedTaint {
        /// The key of the taint.
        key: SymbolId,
    },
    /// The pod requests a resource that no node has.
    UnknownResource,
    /// The pod requests more than the node's allocatable.
    InsufficientAllocatable {
        /// The resource.
        resource: ResourceId,
        /// The requested amount.
        requested: Amount,
        /// The allocatable amount.
        allocatable: Amount,
    },
}

impl Shape {
    /// Why a node rejects pods of this shape; `None` if it does not. Reasons are checked in the order of
    /// [`FilterRejection`]. Costs the taints, labels and requests.
    ///
    /// Source: kube-scheduler v1.37, plugins `NodeUnschedulable`, `NodeAffinity`, `TaintToleration`,
    /// `NodeResourcesFit` (`Fits` with nothing requested).
    #[must_use]
    pub fn rejection_by(&self, host: &Host, symbols: &SymbolTable) -> Option<FilterRejection> {
        if !host.is_present {
            return Some(FilterRejection::NodeNotFound);
        }
        if host.is_unschedulable && !self.tolerates_cordon(symbols) {
            return Some(FilterRejection::Unschedulable);
        }
        if !self.selects(host, symbols) {
            return Some(FilterRejection::SelectorMismatch);
        }
        if let Some(taint) = self.untolerated_taint(host) {
            return Some(FilterRejection::UntoleratedTaint { key: taint.key });
        }
        if self.has_unknown_resource {
            return Some(FilterRejection::UnknownResource);
        }
        // A node has one of each port: there is none that it lacks without other pods.
        let mut requests = self.resources().iter();
        requests.find_map(|(resource, requested)| {
            let allocatable = host.allocatable.get(*resource);
            let (resource, requested) = (*resource, *requested);
            (requested > allocatable).then_some(FilterRejection::InsufficientAllocatable {
                resource,
                requested,
                allocatable,
            })
        })
    }

    /// The first taint of a node that keeps pods of this shape away.
    pub(super) fn untolerated_taint<'a>(&self, host: &'a Host) -> Option<&'a Taint> {
        let is_untolerated = |taint: &&Taint| {
            // This effect lowers the node's score in kube-scheduler, but rejects no pod.
            taint.effect != TaintEffect::PreferNoSchedule
                && !self.tolerations.iter().any(|it| it.tolerates(taint))
        };
        host.taints.iter().find(is_untolerated)
    }

    /// Whether a node matches the node selector and the required node affinity.
    pub(super) fn selects(&self, host: &Host, symbols: &SymbolTable) -> bool {
        let is_affine = self.affinity.as_ref().is_none_or(|affinity| {
            let mut terms = affinity.0.iter();
            terms.any(|it| it.matches(&host.labels, &host.fields, symbols))
        });
        is_affine && self.selector.matches(&host.labels, symbols)
    }

    /// A cordoned node is treated like one with the taint `node.kubernetes.io/unschedulable:NoSchedule`.
    fn tolerates_cordon(&self, symbols: &SymbolTable) -> bool {
        self.tolerations.iter().any(|toleration| {
            let is_key = toleration
                .key
                .is_none_or(|key| symbols.text(key) == UNSCHEDULABLE_TAINT);
            // The taint has no value, so a toleration with `Equal` must have an empty one.
            let is_value = match toleration.condition {
                super::pod::TolerationCondition::Exists => true,
                super::pod::TolerationCondition::Equal(value) => symbols.text(value).is_empty(),
            };
            is_key
                && is_value
                && toleration
                    .effect
                    .is_none_or(|it| it == TaintEffect::NoSchedule)
        })
    }
}

const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
