//! `lockkeeper explain`.

mod arguments;
mod decision_report;
mod manifest;
mod node_scenarios;
mod scenario;
mod selected_scenario;
mod workload;

use crate::Failure;
use crate::file_replacement::write_file;
use crate::standard_output::{print, print_visible};
use anyhow::Context;
use workload::Explanation;

pub(crate) use arguments::Arguments;

/// Answers about a workload, or about the decisions for a scenario.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let explanation = match (&arguments.scenario.scenario, &arguments.subject) {
        (Some(file), _) => Explanation {
            text: scenario::explain_scenario_file(file, arguments).map_err(Failure::Usage)?,
            report: None,
        },
        (None, Some(subject)) => workload::explain_workload(subject, arguments)?,
        (None, None) => workload::explain_manifest(arguments)?,
    };
    if let (Some(path), Some(report)) = (&arguments.report, explanation.report) {
        if path.as_os_str() == "-" {
            return Ok(print(report)?);
        }
        write_file(path, &report)
            .with_context(|| format!("cannot write the report {}", path.display()))?;
    }
    Ok(print_visible(&explanation.text)?)
}
