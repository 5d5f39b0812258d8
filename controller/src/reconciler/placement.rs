//! Placement on nodes: a workload of a queue with the placement policy `Nodes` is admitted when all its pods fit on nodes.
//!
//! After a cycle has found quota for a workload, its placement is planned ([`admission_placement`]). If it fits, the admission
//! has the nodes. If units must be preempted, the quota is reserved and the nodes are nominated in one write; when that
//! is stored, all victims are evicted, and the workload is admitted when they are gone ([`nominations`]). If it does not
//! fit, it waits until nodes change ([`waiting`]).
//!
//! All state is derived from objects: a nominated placement in the status of a workload, and the units on nodes. So a
//! restart between any two writes continues.

pub(super) mod admission_placement;
pub(super) mod member_nodes;
pub(super) mod node_placement;
pub(super) mod nominations;
pub(super) mod retries;
pub(super) mod units;
pub(super) mod victim_pod;
pub(super) mod victim_writes;
mod victims;
pub(super) mod waiting;
mod workload_unit;
