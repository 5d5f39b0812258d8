//! Nodes, pods, and the nodes on which each pod fits: the model for all placement.
//!
//! A *host* is a Kubernetes Node; the module `quota` uses *node* for nodes of the quota tree.
//!
//! - [`Cluster`] contains the nodes with their free resources, and the pods. It is updated by events.
//! - [`Shape`] contains the common properties of pods of one template: requests and node constraints. Shapes are
//!   interned, so that a node is filtered once for each shape and not once for each pod.
//! - [`Shape::rejection_by`] filters nodes that preemption cannot make feasible: by taint, selector, or size.
//! - [`Overlay`] records reservations and releases on top of the free resources. It never changes the cluster, and
//!   rolls back to any mark.
//! - [`place()`] places pods on nodes, one after another, by first fit or best fit.
//! - [`InterPodTable`] counts the pods that restrict others by pod affinity, anti-affinity or topology spread. Most decisions
//!   need none; [`place_beside_pods`] places pods that have one.
//!
//! The model covers the plugins `NodeResourcesFit`, `NodePorts` (any host IP conflicts with any other), `NodeAffinity`
//! (required terms), `TaintToleration`, `NodeUnschedulable`, `InterPodAffinity` (required terms) and `PodTopologySpread`
//! (`DoNotSchedule`) of kube-scheduler v1.37. Volumes and devices are not modelled.

mod cluster;
mod counted_pods;
mod filter;
mod fit;
mod host;
mod inter_pod;
mod inter_pod_counts;
mod inter_pod_fit;
mod inter_pod_index;
mod inter_pod_table;
mod labels;
mod overlay;
mod placed_pods;
mod pod;
mod resource_vec;
mod used_ids;

pub use cluster::Cluster;
pub use filter::FilterRejection;
pub use fit::{Placement, Strategy, place};
pub use host::{Host, HostSpec, Taint, TaintEffect};
pub use inter_pod::{InterPodConstraints, InterPodRejection, PodAffinityTerm, TopologySpread};
pub use inter_pod_counts::{CountsMark, InterPodCounts};
pub use inter_pod_fit::place_beside_pods;
pub use inter_pod_table::InterPodTable;
pub use labels::{LabelCondition, Labels, Requirement, Selector, SymbolTable};
pub use overlay::{FreeResources, Mark, Overlay};
pub use placed_pods::PlacedPods;
pub use pod::{
    Affinity, AffinityTerm, Pod, PodPreemption, PodSpec, Shape, Toleration, TolerationCondition,
};
pub use resource_vec::ResourceVec;
pub use used_ids::UsedIds;
