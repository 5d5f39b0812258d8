//! `lockkeeper explain`.

mod arguments;
mod manifest;
mod node_scenarios;
mod scenario;
mod selected_scenario;
mod workload;

use crate::Failure;
use crate::standard_output::print_visible;

pub(crate) use arguments::Arguments;

/// Answers about a workload, or about the decisions for a scenario.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let text = match (&arguments.scenario.scenario, &arguments.subject) {
        (Some(file), _) => {
            scenario::explain_scenario_file(file, arguments).map_err(Failure::Usage)?
        }
        (None, Some(subject)) => workload::explain_workload(subject, arguments)?,
        (None, None) => workload::explain_manifest(arguments)?,
    };
    Ok(print_visible(&text)?)
}
