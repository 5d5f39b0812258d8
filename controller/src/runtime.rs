//! The async runtime around the reconciler: watches, writes, leader election, metrics.

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

/// An error at the start of the controller.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The controller may not read the Lease.
    #[error(
        "the Lease {name} cannot be read: {why}; grant the service account get and update on it"
    )]
    Lease {
        /// Namespace and name.
        name: String,
        /// The message of the API server.
        why: String,
    },
    /// The API server does not respond to discovery.
    #[error("the API server does not respond to discovery: {0}")]
    ApiServer(String),
}

/// The message of an error followed by its causes.
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
