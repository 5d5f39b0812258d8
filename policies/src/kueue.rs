//! Rules of Kueue's kinds (`kueue.x-k8s.io`). Fields that lockkeeper's own kinds have too are checked by the rules
//! of these kinds; this module has the rules of fields that only Kueue has. Kueue enforces all of them itself, so
//! they are off by default.

mod cluster_queue;
mod cohort;
mod resource_flavor;
mod schemas;
mod workload;

pub use schemas::{kinds, structural_schema};
