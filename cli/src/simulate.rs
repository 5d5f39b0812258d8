//! `lockkeeper simulate`.

mod arguments;
mod comparison;
mod format;
mod inputs;
mod measures;
mod parallel;
mod result_text;
mod simulated;
mod terminal;

use crate::Failure;
use crate::file_replacement::write_file;
use crate::plot_files::write_plots;
use crate::standard_output::print;
use anyhow::{Context, Error, anyhow};
use arguments::is_standard;
pub(crate) use arguments::{Arguments, InputArguments};
use comparison::Comparer;
use inputs::{Inputs, locate, locate_job, read_all};
pub(crate) use inputs::{Located, read_object, read_traces};
use lockkeeper_report::{SIMULATIONS_MAX, Simulation, render};
use lockkeeper_simulate::timeline::{JobTrace, TraceConfig, metrics, simulate};
pub(crate) use measures::{Measure, measures};
pub(crate) use parallel::run_in_order;
use result_text::{Output, ResultText};
use simulated::Simulated;
use std::borrow::Cow;

/// Simulates the traces with each configuration, writes the report, and prints the results or shows
/// them in the terminal. A mistake in any file
/// prevents all output.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_report_printed = arguments.report.as_deref().is_some_and(is_standard);
    if is_report_printed && arguments.output != Output::Human {
        let message = "--report - and --output json, csv or markdown both write to stdout; give a file for the report";
        return Err(Failure::Usage(anyhow!(message)));
    }
    if arguments.tui {
        terminal::check_usage(arguments).map_err(Failure::Usage)?;
    }
    let inputs = read_all(arguments)?;
    let is_reported = arguments.report.is_some() || arguments.plots.is_some() || arguments.tui;
    let tasks = tasks(&inputs);
    if is_reported && tasks.len() > SIMULATIONS_MAX {
        return Err(Failure::Usage(anyhow!(
            "a report has at most {SIMULATIONS_MAX} simulations, found {} (traces times configurations); give fewer files",
            tasks.len()
        )));
    }
    let mut result = ResultText::new(arguments.output);
    let mut comparer = Comparer::default();
    let mut reported = Vec::new();
    let consume = |(is_first, simulated)| {
        if is_first {
            comparer.begin_trace();
        }
        result.add(&simulated)?;
        comparer.add(&simulated)?;
        // Only a report needs all timelines at the same time.
        reported.extend(is_reported.then_some(simulated));
        Ok(())
    };
    run_in_order(&tasks, simulate_task, consume).map_err(Failure::Usage)?;
    let simulations: Vec<Simulation<'_>> = reported.iter().map(Simulated::simulation).collect();
    if let Some(folder) = &arguments.plots {
        write_plots(folder, &simulations)?;
    }
    if let Some(path) = &arguments.report {
        let report = render(&simulations);
        if is_report_printed {
            return Ok(print(report)?);
        }
        write_file(path, &report)
            .with_context(|| format!("cannot write the report {}", path.display()))?;
    }
    if arguments.tui {
        return Ok(terminal::show(&simulations)?);
    }
    Ok(print(result.finish(comparer.comparisons())?)?)
}

/// A trace with a configuration.
struct Task<'a> {
    trace: &'a Located<JobTrace>,
    config: Option<&'a Located<TraceConfig>>,
    /// Whether it is the first of its trace.
    is_first: bool,
}

/// All traces with all configurations, in the order of the files.
fn tasks(inputs: &Inputs) -> Vec<Task<'_>> {
    let configs: Vec<Option<&Located<TraceConfig>>> = if inputs.configs.is_empty() {
        vec![None]
    } else {
        inputs.configs.iter().map(Some).collect()
    };
    let tasks = inputs.traces.iter().flat_map(|trace| {
        configs.iter().enumerate().map(move |(at, config)| Task {
            trace,
            config: *config,
            is_first: at == 0,
        })
    });
    tasks.collect()
}

/// Simulates a trace with a configuration. Returns also whether it is the first of its trace.
fn simulate_task<'a>(task: &Task<'a>) -> Result<(bool, Simulated<'a>), Error> {
    let Task {
        trace: located,
        config,
        is_first,
    } = *task;
    let id = if located.value.id.is_empty() {
        &located.file
    } else {
        &located.value.id
    };
    let trace = match config {
        Some(config) => Cow::Owned(config.value.applied_to(&located.value)),
        None => Cow::Borrowed(&located.value),
    };
    let timeline = simulate(&trace).map_err(|error| match config {
        // The mistake may be in either file, and is in the second if the trace alone is valid.
        Some(config) => {
            let place = locate_job(located, &error);
            anyhow!("{place} with {}: {error}", config.file)
        }
        None => locate(located, &error),
    })?;
    let metrics = metrics(&trace, &timeline);
    let simulated = Simulated {
        id,
        config: config.map(|it| it.file.as_str()),
        trace,
        timeline,
        metrics,
    };
    Ok((is_first, simulated))
}
