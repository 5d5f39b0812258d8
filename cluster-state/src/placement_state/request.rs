//! Workloads and placement requests, and the decisions on them.

use crate::pod_defaults::PodDefaults;
use k8s_openapi::api::core::v1::{PodTemplateSpec, Toleration};
use lockkeeper_api::workload::{DisruptionMode, NominatedPlacement};

/// A workload with the properties that decide about its preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadUnit<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The uids of the objects that own its pods; for a single pod, the uid of the pod.
    pub owner_uids: Vec<&'a str>,
    /// The priority with which it is scheduled.
    pub priority: i32,
    /// The priority by which it is selected as a victim; not below `priority`.
    pub preemption_priority: i32,
    /// Whether the preemption policy of its class is `Never`.
    pub never_preempts: bool,
    /// Whether it is evicted: its pods are expected to terminate.
    pub is_evicted: bool,
    /// Whether it is never a victim: a non-preemptible workload of an elastic ClusterQueue.
    pub is_non_preemptible: bool,
    /// Whether its pods are preempted one by one, or together.
    pub disruption: DisruptionMode,
}

/// A workload that needs room for its pods.
#[derive(Clone, Debug)]
pub struct PlacementRequest<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The pod sets, in the order in which they are placed. All pods are required.
    pub pod_sets: Vec<PlacementPodSet<'a>>,
    /// Units with a lower preemption priority are potential victims.
    pub priority: i32,
    /// Whether the preemption policy of its class is `Never`.
    pub never_preempts: bool,
    /// What the API server adds to the requests of new pods, if anything.
    pub pod_defaults: Option<&'a PodDefaults>,
    /// The nodes that an earlier decision nominated.
    pub nominated: Option<&'a NominatedPlacement>,
}

/// Pods of one template.
#[derive(Clone, Debug)]
pub struct PlacementPodSet<'a> {
    /// The name of the pod set.
    pub name: &'a str,
    /// The template of the pods.
    pub template: &'a PodTemplateSpec,
    /// The number of pods; a negative number is zero.
    pub count: i32,
    /// The node labels of the assigned flavors, added to the node selector of the template.
    pub node_selector: Vec<(&'a str, &'a str)>,
    /// The tolerations of the assigned flavors, added to those of the template.
    pub tolerations: Vec<&'a Toleration>,
}

/// A decision on a [`PlacementRequest`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementDecision {
    /// The decision itself.
    pub outcome: PlacementOutcome,
    /// Why the nominated placement of the request is no longer valid, as a sentence for a condition; `None` if it is
    /// valid, if there is none, or if the workload fits without preemption.
    pub dropped: Option<String>,
}

/// The outcome of a [`PlacementRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum PlacementOutcome {
    /// All pods fit without preemption.
    Fits(NominatedPlacement),
    /// All pods fit after the preemption of these victims.
    Preempt {
        /// The nodes of the pods.
        placement: NominatedPlacement,
        /// The victims, the most important first; never empty. Pods that are terminating already are left out.
        victims: Vec<Victim>,
    },
    /// All pods fit as soon as pods that are already terminating, or that belong to an evicted workload, are gone. No
    /// unit is preempted.
    AwaitingVictims(NominatedPlacement),
    /// The pods do not fit, even without the pods of lower priority: the obstacles, for a condition.
    Infeasible(String),
}

/// A unit to preempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Victim {
    /// A workload as a whole.
    Workload {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// A single pod.
    Pod {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The uid.
        uid: String,
        /// Whether its preemption violates a disruption budget.
        violates_budget: bool,
        /// The name of its workload, if it belongs to one that loses single pods.
        workload: Option<String>,
    },
}

impl Victim {
    /// The reference to the unit, for [`PlacementState::has_pods`](super::PlacementState::has_pods).
    #[must_use]
    pub fn reference(&self) -> VictimRef<'_> {
        match self {
            Self::Workload { namespace, name } => VictimRef::Workload { namespace, name },
            Self::Pod {
                namespace,
                name,
                uid,
                ..
            } => VictimRef::Pod {
                namespace,
                name,
                uid,
            },
        }
    }
}

/// A reference to a unit that was preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimRef<'a> {
    /// A workload as a whole.
    Workload {
        /// The namespace.
        namespace: &'a str,
        /// The name.
        name: &'a str,
    },
    /// A single pod.
    Pod {
        /// The namespace.
        namespace: &'a str,
        /// The name.
        name: &'a str,
        /// The uid: a pod with the same name and another uid is another pod.
        uid: &'a str,
    },
}
