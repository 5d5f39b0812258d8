//! `lockkeeper doctor`: checks the webhooks, CRDs, certificates and quota of a cluster.

mod handshake;
mod live_snapshot;
mod report;

use crate::Failure;
use crate::report_format::to_pretty_json;
use crate::standard_output::print_visible;
use crate::world_source::{SourceArguments, world_settings};
use clap::{Args, ValueEnum};
use live_snapshot::LiveSnapshot;
use lockkeeper_doctor::{Diagnosis, Severity, diagnose};
use report::text_report;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  no errors; there may be warnings
  1  errors
  2  usage or configuration error, or unreadable input
  141  the reader of standard output closed it";

/// Flags of `lockkeeper doctor`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: SourceArguments,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text
    Text,
    /// JSON
    Json,
}

/// Checks the objects, and prints the findings.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let config = arguments.source.configuration()?.unwrap_or_default().config;
    let settings = world_settings(config, None, false, None);
    let mut live = LiveSnapshot::default();
    let is_dump = arguments
        .source
        .read_dump(&mut |object| live.snapshot.add(object))?;
    if !is_dump {
        live = live_snapshot::read(arguments.source.cluster())?;
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now_s = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let mut diagnosis = diagnose(&live.snapshot, &settings, &live.handshakes, now_s);
    diagnosis.not_checked.extend(live.not_listed);
    diagnosis
        .not_checked
        .extend_from_slice(live.snapshot.unreadable());
    match arguments.output {
        Output::Json => print_visible(&to_pretty_json(&diagnosis)?)?,
        Output::Text => print_visible(&text_report(&diagnosis))?,
    }
    Ok(exit_code(&diagnosis))
}

fn exit_code(diagnosis: &Diagnosis) -> ExitCode {
    let mut findings = diagnosis.findings.iter();
    if findings.any(|it| it.severity() == Severity::Error) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
