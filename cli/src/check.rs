//! `lockkeeper check`: flags, files and printing around the linter in `lockkeeper-check`.

mod admission_policies;
mod arguments;
mod cluster_audit;
pub(crate) mod cluster_list;
mod cluster_policies;
mod conversion_flags;
mod existing_objects;
mod fix_files;
mod inputs;
mod kustomize;
mod manifest_sources;
mod plan;
mod printer;
#[cfg(test)]
mod tests;

use crate::Failure;
use crate::standard_output::StandardOutput;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

pub(crate) use arguments::Arguments;

/// Exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  no findings at or above --fail-on
  1  findings at or above --fail-on
  2  usage or configuration error, or unreadable input
  141  the reader of standard output closed it";

/// Checks, prints the report, and returns the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let code = check(arguments, &mut BufWriter::new(StandardOutput::new()))?;
    Ok(ExitCode::from(code))
}

fn check(arguments: &Arguments, out: &mut (impl Write + Send)) -> Result<u8, Failure> {
    let plan = plan::Plan::new(arguments)?;
    if arguments.existing.stored {
        cluster_audit::run(plan, out)
    } else {
        plan.run(out)
    }
}
