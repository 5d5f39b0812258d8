//! The filter and the format of log lines.

use clap::ValueEnum;
use std::io::{IsTerminal, stderr};
use tracing_subscriber::EnvFilter;

/// The default filter. The line of kube about each failed request is off, because lockkeeper logs the failure with
/// its cause.
const DEFAULT: &str = "info,kube_client::client::builder=off";

/// Added to every filter: below this level, kube logs whole responses of the API server, Secrets included.
const NO_BODIES: &str = "kube_client::client=error";

/// The environment variable with the filter, such as `lockkeeper_webhook=debug`.
const VARIABLE: &str = "LOCKKEEPER_LOG";

/// The format of log lines.
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
