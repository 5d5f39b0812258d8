//! The shell around the reconciler: watches feed it, its writes are performed, a Lease says whether it may.

mod election;
mod leader;
mod metrics;
mod object;
mod report;
mod run;
mod watch;
mod watching;
mod write;

pub use election::Terms;
pub use leader::LeaseSettings;
pub use run::{Health, RunSettings, run};

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
fn chain(error: &dyn Error) -> String {
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
