//! Nodes, pods, and which pod can go where: the model that all placement stands on.
//!
//! - [`Cluster`] has the nodes with what is free on them, and the pods. It changes by events.
//! - [`Shape`] is what pods of one template have in common: what each asks for, and where it may go. Shapes
//!   are interned, so that a node is asked once for a shape and not once for a pod.
//! - [`Shape::refused_by`] is what no preemption mends: a taint, a selector, a node that is too small.
//! - [`Overlay`] is the room as it would be: what is free, and what is taken and given back on top of that.
//!   It never edits the cluster, and goes back to any mark.
//! - [`place()`] puts pods on nodes, one after the other: the first that fits in the order of nodes, or the one
//!   that is left fullest.
//!
//! What a pod needs of a node is what `NodeResourcesFit`, `NodeAffinity` (what is required), `TaintToleration`
//! and `NodeUnschedulable` of kube-scheduler v1.37 look at. Ports, volumes, devices, affinity to other pods and
//! topology spread are not known here.

mod cluster;
mod filter;
mod fit;
mod host;
mod labels;
mod overlay;
mod pod;
mod resource_vec;

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
