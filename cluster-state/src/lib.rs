//! The objects of a cluster as values of the preemption core, and its decisions as object changes.
//!
//! | object | input of the core |
//! |---|---|
//! | ClusterQueue | [`queue_spec`]; inactive if it is stopped or a flavor is missing |
//! | Cohort | [`cohort_spec`] |
//! | `ResourceFlavor` | the flavors that a pod set cannot use: taints, node selector, required affinity |
//! | LocalQueue | the ClusterQueue of a workload, and whether the workload is queued |
//! | Workload | [`pod_sets`], [`reservation`], [`WorkloadPhase`] |
//! | PriorityClass | the priorities, until the status has them; whether its workloads preempt |
//! | `LimitRange`, `RuntimeClass` | the requests of pods that their templates do not have ([`pod_default_objects`]) |
//! | namespace | whether the ClusterQueue accepts its workloads |
//!
//! [`ClusterState`] stores all of them, and applies one watch event at a time to the state of the core.
//! [`placement_state::PlacementState`] does so for nodes, pods and disruption budgets, to the core's placement.
//!
//! Not read: pod groups and placements; of the tolerations with `Gt` and `Lt`, those of pods on nodes.
#![deny(clippy::arithmetic_side_effects)]

mod admission_status;
mod cluster_event;
mod cluster_state;
pub mod core_labels;
mod cycle_record;
pub mod decision_text;
mod error;
mod flavor_eligibility;
mod flavor_searches;
pub mod host_ports;
pub mod inter_pod_fields;
pub mod inter_pod_text;
pub mod journal;
pub mod label_selector;
mod object_store;
mod overflow_guard;
mod pending_message;
pub mod pending_reason;
pub mod placement_state;
pub mod pod_default_objects;
mod pod_defaults;
mod pod_group_size;
mod pod_requests;
mod preemption_message;
mod preemption_obstacle;
mod preemption_traits;
mod quantities;
pub mod queue_policies;
mod quota_specs;
mod reported_status;
pub mod scheduling_fields;
pub mod settings;
mod uncovered_resources;
mod workload_phase;
mod workload_placement;
mod workload_store;
mod workload_sync;
mod workloads;

pub use admission_status::{
    PreemptionCause, admission, admission_after_preemption, preemption_conditions,
};
pub use cluster_state::{ClusterState, end_hold, set_stuck};
pub use error::{ObjectError, ObjectProblem};
pub use flavor_eligibility::Flavors;
pub use flavor_searches::FlavorSearches;
pub use object_store::{Completeness, ObjectStore};
pub use pending_message::pending_message;
pub use pod_defaults::PodDefaults;
pub use pod_group_size::{PodGroupSize, PodGroupSource, pod_group_size};
pub use pod_requests::{RequestRules, pod_requests};
pub use preemption_message::PreemptionMessage;
pub use preemption_traits::{PreemptionTraits, preemption_traits};
pub use quantities::{in_core_units, quantity};
pub use quota_specs::{cohort_spec, queue_spec, selector};
pub use reported_status::{EVICTION_STUCK, apply_reported_status, kept_out};
pub use uncovered_resources::{uncovered_resources, uncovered_resources_message};
pub use workload_phase::{NotQueuedReason, WorkloadPhase};
pub use workload_placement::{
    assigned_flavors, disruption_mode, effective_priorities, placement_priorities,
    placement_request,
};
pub use workloads::{
    latest_end_s, lifecycle_state, pod_sets, preemption_labels, reservation, stop_policy,
    workload_key,
};
