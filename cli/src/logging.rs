//! What is logged, and how it looks.

use clap::ValueEnum;
use std::io::{IsTerminal, stderr};
use tracing_subscriber::EnvFilter;

/// What is logged unless the environment says otherwise. kube says at each failed request what our
/// own lines say with its cause.
const DEFAULT: &str = "info,kube_client::client::builder=off";

/// Holds whatever the environment says: at lower levels whole answers of the API server are logged,
/// and Secrets are among them.
const NO_BODIES: &str = "kube_client::client=error";

/// The environment variable that says what is logged, such as `lockkeeper_webhook=debug`.
const VARIABLE: &str = "LOCKKEEPER_LOG";

/// How log lines look.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl LogFormat {
    /// Starts logging to standard error.
    pub(crate) fn start(self) {
        let filter = EnvFilter::try_from_env(VARIABLE);
        let mut filter = filter.unwrap_or_else(|_| EnvFilter::new(DEFAULT));
        if let Ok(no_bodies) = NO_BODIES.parse() {
            filter = filter.add_directive(no_bodies);
        }
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(stderr)
            .with_ansi(stderr().is_terminal());
        match self {
            Self::Text => subscriber.init(),
            Self::Json => subscriber.json().init(),
        }
    }
}
