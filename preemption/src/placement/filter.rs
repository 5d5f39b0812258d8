//! Where a pod cannot go, whoever leaves.

use super::host::{Effect, Host, Taint};
use super::labels::Words;
use super::pod::Shape;
use crate::amount::Amount;
use crate::names::{ResourceId, WordId};

/// Why a node is nothing for a pod, whoever leaves it. kube-scheduler calls it `UnschedulableAndUnresolvable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such node.
    Absent,
    /// It is cordoned.
    Unschedulable,
    /// It does not have the labels that the pod wants.
    Unselected,
    /// It has a taint that the pod does not tolerate.
    Tainted {
        /// The key of the taint.
        key: WordId,
    },
    /// The pod asks for more than the node has in all.
    TooSmall {
        /// Of which resource.
        resource: ResourceId,
        /// How much it asks for.
        asked: Amount,
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
    pub fn refused_by(&self, host: &Host, words: &Words) -> Option<Refusal> {
        if !host.is_present {
            return Some(Refusal::Absent);
        }
        if host.is_unschedulable && !self.tolerates_cordon(words) {
            return Some(Refusal::Unschedulable);
        }
        if !self.is_selected(host, words) {
            return Some(Refusal::Unselected);
        }
        let is_refused = |taint: &&Taint| {
            taint.effect != Effect::PreferNoSchedule
                && !self.tolerations.iter().any(|it| it.tolerates(taint))
        };
        if let Some(taint) = host.taints.iter().find(is_refused) {
            return Some(Refusal::Tainted { key: taint.key });
        }
        let mut requests = self.requests.iter();
        requests.find_map(|(resource, asked)| {
            let allocatable = host.allocatable.get(*resource);
            let (resource, asked) = (*resource, *asked);
            (asked > allocatable).then_some(Refusal::TooSmall {
                resource,
                asked,
                allocatable,
            })
        })
    }

    fn is_selected(&self, host: &Host, words: &Words) -> bool {
        let is_affine = self.affinity.as_ref().is_none_or(|affinity| {
            let mut terms = affinity.0.iter();
            terms.any(|it| it.matches(&host.labels, &host.fields, words))
        });
        is_affine && self.selector.matches(&host.labels, words)
    }

    /// A cordoned node is as good as one with the taint `node.kubernetes.io/unschedulable:NoSchedule`.
    fn tolerates_cordon(&self, words: &Words) -> bool {
        self.tolerations.iter().any(|it| {
            let is_key = it
                .key
                .is_none_or(|key| words.text(key) == UNSCHEDULABLE_TAINT);
            let is_value = match it.condition {
                super::pod::TolerationCondition::Exists => true,
                super::pod::TolerationCondition::Equal(value) => words.text(value).is_empty(),
            };
            is_key && is_value && it.effect.is_none_or(|it| it == Effect::NoSchedule)
        })
    }
}

const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
