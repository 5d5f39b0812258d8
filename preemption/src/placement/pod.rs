//! Pods.

use super::host::{Taint, TaintEffect};
use super::labels::{Labels, Requirement, Selector, SymbolTable};
use crate::amount::Amount;
use crate::ids::{HostId, ResourceId, ShapeId, SymbolId};
use std::sync::Arc;

/// A pod as it is told to the cluster.
#[derive(Clone, Debug)]
pub struct PodSpec<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The node it runs on; `None` while it is pending.
    pub host: Option<HostId>,
    /// What it asks for and where it may go, from [`super::Cluster::shape`].
    pub shape: ShapeId,
    /// Its labels.
    pub labels: Labels,
    /// Its own priority (`spec.priority`, 0 if there is none).
    pub priority: i32,
    /// Whether it preempts.
    pub preemption: PodPreemption,
    /// When it started, in nanoseconds since 1970; one that has not counts as newest.
    pub started_at_ns: Option<i64>,
    /// Whether it is on its way out (it has a deletion timestamp).
    pub is_terminating: bool,
}

/// `spec.preemptionPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPreemption {
    /// `PreemptLowerPriority`.
    #[default]
    LowerPriority,
    /// `Never`.
    Never,
}

/// A pod.
#[derive(Clone, Debug)]
pub struct Pod {
    pub(super) namespace: SymbolId,
    pub(super) name: Arc<str>,
    pub(super) host: Option<HostId>,
    pub(super) shape: ShapeId,
    pub(super) labels: Labels,
    pub(super) priority: i32,
    pub(super) preemption: PodPreemption,
    pub(super) started_at_ns: Option<i64>,
    pub(super) is_terminating: bool,
}

impl Pod {
    /// Its namespace.
    #[must_use]
    pub const fn namespace(&self) -> SymbolId {
        self.namespace
    }

    /// Its name, without the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The node it runs on.
    #[must_use]
    pub const fn host(&self) -> Option<HostId> {
        self.host
    }

    /// What it asks for and where it may go.
    #[must_use]
    pub const fn shape(&self) -> ShapeId {
        self.shape
    }

    /// Its labels.
    #[must_use]
    pub const fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Its own priority.
    #[must_use]
    pub const fn priority(&self) -> i32 {
        self.priority
    }

    /// Whether it preempts.
    #[must_use]
    pub const fn preemption(&self) -> PodPreemption {
        self.preemption
    }

    /// When it started, in nanoseconds since 1970.
    #[must_use]
    pub const fn started_at_ns(&self) -> Option<i64> {
        self.started_at_ns
    }

    /// Whether it is on its way out.
    #[must_use]
    pub const fn is_terminating(&self) -> bool {
        self.is_terminating
    }
}

/// What pods of one template have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// What each asks for, sorted, none of it zero or twice. [`super::Cluster::shape`] adds one of
    /// [`ResourceId::PODS`].
    pub requests: Vec<(ResourceId, Amount)>,
    /// `spec.nodeSelector`.
    pub selector: Selector,
    /// `requiredDuringSchedulingIgnoredDuringExecution` on nodes; `None` is anywhere.
    pub affinity: Option<Affinity>,
    /// What it tolerates.
    pub tolerations: Vec<Toleration>,
}

/// Terms, one of which must be met; none of them is nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Affinity(pub Box<[AffinityTerm]>);

/// A term of an affinity: all of its requirements must be met, and one without any meets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AffinityTerm {
    /// On the node's labels.
    pub labels: Box<[Requirement]>,
    /// On its fields, of which there is only `metadata.name`.
    pub fields: Box<[Requirement]>,
}

impl AffinityTerm {
    pub(super) fn matches(&self, labels: &Labels, fields: &Labels, words: &SymbolTable) -> bool {
        let of_labels = self.labels.iter().all(|it| it.matches(labels, words));
        let is_empty = self.labels.is_empty() && self.fields.is_empty();
        !is_empty && of_labels && self.fields.iter().all(|it| it.matches(fields, words))
    }
}

/// A toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// The key of the taint; `None` is every key.
    pub key: Option<SymbolId>,
    /// The value of the taint.
    pub condition: TolerationCondition,
    /// The effect of the taint; `None` is every effect.
    pub effect: Option<TaintEffect>,
}

/// What the value of a tolerated taint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TolerationCondition {
    /// Whatever.
    Exists,
    /// This one.
    Equal(SymbolId),
}

impl Toleration {
    /// Source: `core/v1` `Toleration.ToleratesTaint`.
    pub(super) fn tolerates(&self, taint: &Taint) -> bool {
        let is_value = match self.condition {
            TolerationCondition::Exists => true,
            TolerationCondition::Equal(value) => value == taint.value,
        };
        let is_key = self.key.is_none_or(|key| key == taint.key);
        let is_effect = self.effect.is_none_or(|effect| effect == taint.effect);
        is_value && is_key && is_effect
    }
}
