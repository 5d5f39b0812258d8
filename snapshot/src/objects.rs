//! The objects of a cluster as the core's values, and decisions as objects again.
//!
//! | object | what the core gets |
//! |---|---|
//! | ClusterQueue | [`queue_spec`]; not active if it is stopped or a flavor is missing |
//! | Cohort | [`cohort_spec`] |
//! | `ResourceFlavor` | the flavors that a pod set cannot have: taints, node selector, required affinity |
//! | LocalQueue | which ClusterQueue a workload waits in, and whether it does |
//! | Workload | [`pod_sets`], [`reservation`], [`standing`] |
//! | PriorityClass | the priority, until `status.priority` is there |
//! | namespace | whether the ClusterQueue takes it |
//!
//! [`Objects`] keeps all of them, takes one event at a time, and hands each on to the state. It is what
//! stands between a watch and the core.
//!
//! Not read: `status.preemptionPriority` (the core has one priority), pod groups and placements, the
//! switches of `elastic`, tolerations with `Gt` and `Lt`, `LimitRange`s, `RuntimeClass`es (an overhead counts
//! where it stands in the template).

mod amounts;
mod answers;
mod error;
mod nodes;
mod pods;
mod quotas;
mod sums;
mod workloads;
mod world;

pub(crate) use pods::pod_requests;

pub use amounts::quantity;
pub use answers::{admission, preempted};
pub use error::{ObjectError, Problem};
pub use nodes::Flavors;
pub use quotas::{cohort_spec, queue_spec, selector};
pub use workloads::{pod_sets, reservation, says, standing, stop_policy, workload_key};
pub use world::{Knowledge, Objects, Outside, Place};
