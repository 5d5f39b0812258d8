//! Proofs of the core: comparison with a plain reference, properties, and all small clusters.
//!
//! `LOCKKEEPER_PROPTEST_CASES` sets the number of cases: more than by default are different cases, fewer are the first
//! of the default ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking, count cases, and have small amounts"
)]

mod damping;
mod differential;
mod elastic;
mod exhaustive;
mod gangs;
mod invalid_input;
mod job;
mod limits;
mod loops;
mod model;
mod preemption_priority;
mod properties;
mod reference;
mod trace;
