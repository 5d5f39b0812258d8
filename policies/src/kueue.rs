//! Kueue's kinds (`kueue.x-k8s.io`). Rules for fields that lockkeeper's own kinds have as well are those of
//! these kinds; what only Kueue has is here. Kueue enforces all of them by itself where it runs, so they
//! are off by default.

mod cluster_queue;
mod cohort;
mod resource_flavor;
mod schemas;
mod workload;

pub use schemas::{kinds, structural_schema};
