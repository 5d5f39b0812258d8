//! The comparison with a simulated Kueue: the core itself, whose writes are late and whose view lags behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::print_stdout,
    reason = "tests fail by panicking and print what they did"
)]

mod agreement;
mod api;
mod documentation;
mod missing;
mod mutations;
mod objects;
mod simulated_kueue;
