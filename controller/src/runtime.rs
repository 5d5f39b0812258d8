//! The async runtime around the reconciler: watches, writes, leader election, metrics.

mod api_resource;
mod decision_log;
mod declared_watches;
mod definition_watch;
mod event_loop;
mod health;
mod job_reader;
mod kind_discovery;
mod leader_election;
mod leadership_gate;
mod lease;
mod listed_keys;
mod live_preview;
mod metric_labels;
mod metrics;
mod watch;
mod write_log;
mod writer;

pub use decision_log::DecisionLogTarget;
pub use event_loop::{RunSettings, run};
pub use health::Health;
pub use leader_election::LeaseSettings;
pub use lease::LeaseTiming;
pub use live_preview::LivePreview;

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
    /// The thread that renews the lease cannot be started.
    #[error("the thread that renews the lease cannot be started: {0}")]
    LeaseThread(std::io::Error),
    /// The decision log cannot be written.
    #[error("the decision log {file} cannot be written: {why}; set another --decision-log")]
    DecisionLog {
        /// The file.
        file: String,
        /// Why.
        why: std::io::Error,
    },
    /// The API server does not respond to discovery.
    #[error("the API server does not respond to discovery: {0}")]
    ApiServer(String),
}
