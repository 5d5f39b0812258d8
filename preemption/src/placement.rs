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
//!
//! The model covers the plugins `NodeResourcesFit`, `NodePorts` (any host IP conflicts with any other), `NodeAffinity`
//! (required terms), `TaintToleration` and `NodeUnschedulable` of kube-scheduler v1.37. Volumes, devices, pod affinity and
//! topology spread are not modelled.

mod cluster;
mod filter;
mod fit;
mod host;
mod labels;
mod overlay;
mod pod;
mod resource_vec;
mod used_ids;

pub use cluster::Cluster;
pub use filter::FilterRejection;
pub use fit::{Placement, Strategy, place};
pub use host::{Host, HostSpec, Taint, TaintEffect};
pub use labels::{LabelCondition, Labels, Requirement, Selector, SymbolTable};
pub use overlay::{FreeResources, Mark, Overlay};
pub use pod::{
    Affinity, AffinityTerm, Pod, PodPreemption, PodSpec, Shape, Toleration, TolerationCondition,
};
pub use resource_vec::ResourceVec;
pub use used_ids::UsedIds;
