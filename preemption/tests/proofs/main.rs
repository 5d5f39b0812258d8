//! Proofs of the core: against a plain reference, by properties, and on all small worlds.
//!
//! `LOCKKEEPER_PROPTEST_CASES` asks for more cases than the usual ones, and others; or for fewer of these.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking, count what they saw, and have small amounts"
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
mod properties;
mod reference;
mod trace;
