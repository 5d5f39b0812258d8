//! The views of a report in a terminal: snapshots, any keys and sizes, untrusted names, many workloads.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod names;
mod random_keys;
mod report_table;
mod screen;
mod selection;
mod traces;
mod views;
