//! Features that Kueue does not have: held quota, the end of preemption loops, and preemption limits. And events that
//! are too rare in random clusters, such as a queue that changes while workloads run in it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod changes;
mod damping;
mod fixture;
mod kueue_cases;
mod limits;
mod victims;
