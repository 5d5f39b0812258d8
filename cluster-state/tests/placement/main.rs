//! Nodes, pods, budgets and workloads as the state of placement, and plans for workloads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod departures;
mod events;
mod inter_pod;
mod kep_cases;
mod large;
mod messages;
mod nominations;
mod ports;
mod reservations;
mod scheduler_cases;
mod test_state;
mod victims;
