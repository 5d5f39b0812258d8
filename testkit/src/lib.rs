//! Shared by the tests of several crates: seeded random numbers, comparison of generated files, and (with the feature
//! `certificates`) a test CA. Functions panic on errors, as tests do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::missing_panics_doc,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

#[cfg(feature = "certificates")]
mod certificates;
mod generated_file;
mod metric_docs;
mod program;
mod rng;

#[cfg(feature = "certificates")]
pub use certificates::{CertPair, SecretVolume, TestCa, new_signing_key, replace_file};
pub use generated_file::assert_file_is_current;
pub use metric_docs::{MetricRow, documented_metrics, exposed_metrics};
pub use program::run_program;
pub use rng::Rng;
