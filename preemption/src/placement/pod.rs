//! Pods.

use super::host::{Taint, TaintEffect};
use super::inter_pod::InterPodConstraints;
use super::labels::{Labels, Requirement, Selector, SymbolTable};
use crate::amount::Amount;
use crate::ids::{HostId, ResourceId, ShapeId, SymbolId};
use std::sync::Arc;

/// The input for a pod.
#[derive(Clone, Debug)]
pub struct PodSpec<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The node it runs on; `None` while it is pending.
    pub host: Option<HostId>,
    /// Its requests and node constraints, from [`super::Cluster::shape`].
    pub shape: ShapeId,
    /// Its labels.
    pub labels: Labels,
    /// Its own priority (`spec.priority`, 0 if unset).
    pub priority: i32,
    /// Its preemption policy.
    pub preemption: PodPreemption,
    /// When it started, in nanoseconds since 1970; a pod that has not started counts as the newest.
    pub started_at_ns: Option<i64>,
    /// Whether it is terminating (it has a deletion timestamp).
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

    /// Its requests and node constraints.
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

    /// Its preemption policy.
    #[must_use]
    pub const fn preemption(&self) -> PodPreemption {
        self.preemption
    }

    /// When it started, in nanoseconds since 1970.
    #[must_use]
    pub const fn started_at_ns(&self) -> Option<i64> {
        self.started_at_ns
    }

    /// Whether it is terminating.
    #[must_use]
    pub const fn is_terminating(&self) -> bool {
        self.is_terminating
    }
}

/// The common properties of pods of one template.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// The requests of each pod, sorted, without zeros and duplicates: resources, then host ports.
    /// [`super::Cluster::shape`] adds one [`ResourceId::PODS`].
    pub requests: Vec<(ResourceId, Amount)>,
    /// Whether it requests a resource without an id, which no node has. Every node rejects it.
    pub has_unknown_resource: bool,
    /// `spec.nodeSelector`.
    pub selector: Selector,
    /// `requiredDuringSchedulingIgnoredDuringExecution` on nodes; `None` permits all nodes.
    pub affinity: Option<Affinity>,
    /// Its tolerations.
    pub tolerations: Vec<Toleration>,
    /// What it requires of the pods around it.
    pub inter_pod: InterPodConstraints,
}

impl Shape {
    /// Whether its pods use ports of their nodes.
    #[must_use]
    pub fn has_host_ports(&self) -> bool {
        // Sorted: ports are last.
        self.requests.last().is_some_and(|it| it.0.has_port_bit())
    }

    /// Its requests without ports.
    #[must_use]
    pub fn resources(&self) -> &[(ResourceId, Amount)] {
        if !self.has_host_ports() {
            return &self.requests;
        }
        let resources = self.requests.partition_point(|it| !it.0.has_port_bit());
        self.requests.get(..resources).unwrap_or_default()
    }

    /// The ports that it requests.
    #[must_use]
    pub fn host_ports(&self) -> &[(ResourceId, Amount)] {
        self.requests
            .get(self.resources().len()..)
            .unwrap_or_default()
    }
}

/// Affinity terms, one of which must match; no terms match no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Affinity(pub Box<[AffinityTerm]>);

/// An affinity term: all its requirements must match. An empty term matches no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AffinityTerm {
    /// Requirements on the node's labels.
    pub labels: Box<[Requirement]>,
    /// Requirements on its fields, of which there is only `metadata.name`.
    pub fields: Box<[Requirement]>,
}

impl AffinityTerm {
    pub(super) fn matches(&self, labels: &Labels, fields: &Labels, symbols: &SymbolTable) -> bool {
        let of_labels = self.labels.iter().all(|it| it.matches(labels, symbols));
        // `all` over nothing is true, but in Kubernetes an empty term matches no node.
        let is_empty = self.labels.is_empty() && self.fields.is_empty();
        !is_empty && of_labels && self.fields.iter().all(|it| it.matches(fields, symbols))
    }
}

/// A toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// The key of the taint; `None` means every key.
    pub key: Option<SymbolId>,
    /// The value of the taint.
    pub condition: TolerationCondition,
    /// The effect of the taint; `None` means every effect.
    pub effect: Option<TaintEffect>,
}

/// The values of tolerated taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TolerationCondition {
    /// Any value.
    Exists,
    /// This value.
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
