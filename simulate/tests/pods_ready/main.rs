//! Pods that are not ready at once: timeouts, backoff, requeueing and deactivation.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

mod cases;
mod properties;
mod traces;
