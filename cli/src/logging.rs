//! The filter and the format of log lines.

use anyhow::{Error, anyhow};
use clap::ValueEnum;
use std::env;
use std::ffi::OsStr;
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
    /// Starts logging to standard error. The error is about the filter in the environment.
    pub(crate) fn start(self) -> Result<(), Error> {
        let mut filter = parse_filter(env::var_os(VARIABLE).as_deref())?;
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
        Ok(())
    }
}

fn parse_filter(value: Option<&OsStr>) -> Result<EnvFilter, Error> {
    let Some(value) = value.filter(|it| !it.is_empty()) else {
        return Ok(EnvFilter::new(DEFAULT));
    };
    let example =
        "give levels such as info, or targets with levels such as lockkeeper_webhook=debug";
    let Some(text) = value.to_str() else {
        return Err(anyhow!("{VARIABLE} is not UTF-8; {example}"));
    };
    EnvFilter::try_new(text)
        .map_err(|error| anyhow!("{VARIABLE}={text:?} is invalid: {error}; {example}"))
}

#[cfg(test)]
mod tests {
    use super::parse_filter;
    use std::ffi::OsStr;

    #[test]
    fn parse_filter_rejects_invalid_levels() {
        assert!(parse_filter(None).is_ok());
        for valid in ["", "debug", "lockkeeper_webhook=debug,info"] {
            assert!(parse_filter(Some(OsStr::new(valid))).is_ok(), "{valid}");
        }
        let error = parse_filter(Some(OsStr::new("blah=foo"))).unwrap_err();
        assert!(
            error.to_string().contains("LOCKKEEPER_LOG=\"blah=foo\""),
            "{error}"
        );
    }
}
