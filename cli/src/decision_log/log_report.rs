//! `lockkeeper report`: plots of what a controller did, from its decision log.

use super::log_replay::{LogFiles, problem_text, range_text};
use crate::Failure;
use crate::file_replacement::write_file;
use crate::plot_files::write_plots;
use crate::standard_output::print;
use anyhow::{Context, anyhow};
use clap::Args;
use lockkeeper_decision_log::Replay;
use lockkeeper_report::{Simulation, render};
use lockkeeper_trace_import::LogRecorder;
use std::io::{Write, stderr};
use std::path::PathBuf;

/// Flags of `lockkeeper report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    files: LogFiles,

    /// HTML file to write; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Write each plot of the report as an SVG file into a folder
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

/// Writes the report.
pub(crate) fn run_report(arguments: &ReportArguments) -> Result<(), Failure> {
    let replay = Replay::with_observer(LogRecorder::new());
    let found = arguments.files.replay(replay).map_err(Failure::Usage)?;
    if let Some((position, problem)) = &found.problem {
        let text = problem_text(position, problem);
        // The report up to there is still right.
        let _ = write!(stderr(), "warning: {text}");
    }
    let range = range_text(found.replay.summary());
    let Some(recording) = found.replay.into_observer().finish() else {
        return Err(Failure::Other(anyhow!(
            "the log{range} has no Workload in a ClusterQueue"
        )));
    };
    let title = format!("decision log{range}");
    let simulations = [Simulation {
        id: &title,
        config: None,
        trace: &recording.trace,
        timeline: &recording.timeline,
    }];
    if let Some(folder) = &arguments.plots {
        write_plots(folder, &simulations)?;
    }
    let report = render(&simulations);
    if arguments.output.as_os_str() == "-" {
        return Ok(print(report)?);
    }
    let shown = arguments.output.display();
    write_file(&arguments.output, &report)
        .with_context(|| format!("cannot write the report {shown}"))?;
    Ok(())
}
