//! The shell around the reconciler: watches feed it, its writes are performed, a Lease says whether it may.

mod event_loop;
mod leader_election;
mod lease;
mod metrics;
mod raw_object;
mod watch;
mod watch_stream;
mod write_log;
mod writer;

pub use event_loop::{Health, RunSettings, run};
pub use leader_election::LeaseSettings;
pub use lease::LeaseTiming;

use std::error::Error;

/// Why the controller cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The Lease cannot be read.
    #[error("the Lease {name} cannot be read: {why}; give the account get and update on it")]
    Lease {
        /// Its name, with the namespace.
        name: String,
        /// What the API server says.
        why: String,
    },
    /// The API server cannot be asked for its kinds.
    #[error("the API server cannot be asked: {0}")]
    ApiServer(String),
}

/// An error with its causes.
fn error_with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let part = cause.to_string();
        if !text.ends_with(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = cause.source();
    }
    text
}
