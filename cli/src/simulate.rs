//! `lockkeeper simulate`.

use crate::Failure;
use crate::file_replacement::write_file;
use crate::report_format::to_pretty_json;
use crate::standard_output::print;
use anyhow::{Context, Error, anyhow};
use clap::{Args, ValueEnum};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_check::ParsedSource;
use lockkeeper_crdgen::manifests::{TextError, read_file, read_text};
use lockkeeper_report::{SIMULATIONS_MAX, Simulation, plot_files, render};
use lockkeeper_simulate::timeline::{
    JobTrace, Timeline, TraceConfig, event_loop, simulate, utilization, write_summary,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::io::stdin;
use std::path::{Path, PathBuf};

/// Flags of `lockkeeper simulate`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trace files (YAML, JSON, or one JSON object per line); `-` reads stdin
    #[arg(value_name = "FILE", required = true)]
    traces: Vec<PathBuf>,

    /// Queues and settings in place of those of the traces; repeat to compare several
    #[arg(long = "config", value_name = "FILE")]
    configs: Vec<PathBuf>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    output: Output,

    /// Write a report with plots as one HTML file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write each plot of the report as an SVG file into a folder
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Human,
    Json,
}

/// A decoded object and its position, for messages.
struct Located<T> {
    value: T,
    file: String,
    /// The line at which it starts, from 1.
    first_line: usize,
    text: String,
}

/// A simulated trace.
struct Simulated<'a> {
    id: &'a str,
    /// The file of the configuration.
    config: Option<&'a str>,
    /// With the configuration.
    trace: Cow<'a, JobTrace>,
    timeline: Timeline,
}

/// Simulates the traces with each configuration, writes the report, and prints the results. A mistake in any file
/// prevents all output.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_report_printed = arguments.report.as_deref().is_some_and(is_standard);
    if is_report_printed && arguments.output == Output::Json {
        let message =
            "--report - and --output json both write to stdout; give a file for the report";
        return Err(Failure::Usage(anyhow!(message)));
    }
    let (traces, configs) = read_all(arguments).map_err(Failure::Usage)?;
    let mut result = ResultText::new(arguments.output);
    let is_reported = arguments.report.is_some() || arguments.plots.is_some();
    let mut simulated = Vec::new();
    let mut consume = |it| {
        result.add(&it)?;
        // Only a report needs all timelines at the same time.
        simulated.extend(is_reported.then_some(it));
        Ok(())
    };
    for trace in &traces {
        simulate_trace(trace, &configs, &mut consume).map_err(Failure::Usage)?;
    }
    if let Some(folder) = &arguments.plots {
        write_plots(folder, &simulated)?;
    }
    if let Some(path) = &arguments.report {
        let report = render(&simulations(&simulated));
        if is_report_printed {
            return Ok(print(report)?);
        }
        write_file(path, &report)
            .with_context(|| format!("cannot write the report {}", path.display()))?;
    }
    Ok(print(result.finish()?)?)
}

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

type TracesAndConfigs = (Vec<Located<JobTrace>>, Vec<Located<TraceConfig>>);

/// Reads the traces and the configurations, and checks their number if there is a report.
fn read_all(arguments: &Arguments) -> Result<TracesAndConfigs, Error> {
    let mut configs = Vec::new();
    for path in &arguments.configs {
        let mut found: Vec<Located<TraceConfig>> = read_objects(path)?;
        match (found.pop(), found.is_empty()) {
            (Some(config), true) => configs.push(config),
            _ => return Err(anyhow!("{}: expected one object", path.display())),
        }
    }
    let mut traces = Vec::new();
    for path in &arguments.traces {
        traces.extend(read_objects::<JobTrace>(path)?);
    }
    let count = traces.len().saturating_mul(configs.len().max(1));
    if (arguments.report.is_some() || arguments.plots.is_some()) && count > SIMULATIONS_MAX {
        return Err(anyhow!(
            "a report has at most {SIMULATIONS_MAX} simulations, found {count} (traces times configurations); give fewer files"
        ));
    }
    Ok((traces, configs))
}

/// Simulates a trace with each configuration.
fn simulate_trace<'a>(
    trace: &'a Located<JobTrace>,
    configs: &'a [Located<TraceConfig>],
    consume: &mut impl FnMut(Simulated<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let id = if trace.value.id.is_empty() {
        &trace.file
    } else {
        &trace.value.id
    };
    if configs.is_empty() {
        let timeline = simulate(&trace.value).map_err(|error| locate(trace, &error))?;
        consume(Simulated {
            id,
            config: None,
            trace: Cow::Borrowed(&trace.value),
            timeline,
        })?;
    }
    for config in configs {
        let changed = config.value.applied_to(&trace.value);
        // The mistake may be in either file, and is in the second if the trace alone is valid.
        let timeline = simulate(&changed)
            .map_err(|error| anyhow!("{} with {}: {error}", trace.file, config.file))?;
        consume(Simulated {
            id,
            config: Some(&config.file),
            trace: Cow::Owned(changed),
            timeline,
        })?;
    }
    Ok(())
}

fn simulations<'a>(simulated: &'a [Simulated<'_>]) -> Vec<Simulation<'a>> {
    let simulations = simulated.iter().map(|it| Simulation {
        id: it.id,
        config: it.config,
        trace: &it.trace,
        timeline: &it.timeline,
    });
    simulations.collect()
}

fn write_plots(folder: &Path, simulated: &[Simulated<'_>]) -> Result<(), Error> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for plot in plot_files(&simulations(simulated)) {
        let path = folder.join(&plot.name);
        write_file(&path, &plot.svg)
            .with_context(|| format!("cannot write the plot {}", path.display()))?;
    }
    Ok(())
}

/// The results that are printed.
enum ResultText {
    Human(Vec<String>),
    Json(Vec<Value>),
}

impl ResultText {
    fn new(output: Output) -> Self {
        match output {
            Output::Human => Self::Human(Vec::new()),
            Output::Json => Self::Json(Vec::new()),
        }
    }

    fn add(&mut self, simulated: &Simulated<'_>) -> Result<(), Error> {
        match self {
            Self::Human(summaries) => summaries.push(summary(simulated)?),
            Self::Json(results) => results.push(result_json(simulated)?),
        }
        Ok(())
    }

    fn finish(self) -> Result<String, Error> {
        match self {
            Self::Human(summaries) => Ok(summaries.join("\n")),
            Self::Json(results) => to_pretty_json(&json!({"simulations": results})),
        }
    }
}

fn summary(simulated: &Simulated<'_>) -> Result<String, fmt::Error> {
    let mut text = simulated.id.to_owned();
    if let Some(config) = simulated.config {
        text.push_str(", ");
        text.push_str(config);
    }
    text.push('\n');
    write_summary(&mut text, &simulated.trace, &simulated.timeline)?;
    Ok(text)
}

fn result_json(simulated: &Simulated<'_>) -> Result<Value, serde_json::Error> {
    let timeline = &simulated.timeline;
    let mut result = serde_json::to_value(timeline)?;
    if let Some(rows) = result.get_mut("usage").and_then(Value::as_array_mut) {
        for (row, usage) in rows.iter_mut().zip(&timeline.usage) {
            if let Some(row) = row.as_object_mut() {
                let part = utilization(&simulated.trace, timeline, usage);
                row.insert("utilization".to_owned(), json!(part));
            }
        }
    }
    if let Some(result) = result.as_object_mut() {
        result.insert("id".to_owned(), json!(simulated.id));
        result.insert("config".to_owned(), json!(simulated.config));
        // The last events of a livelock or a loop are those that repeat.
        let repeated = event_loop(timeline).len();
        result.insert("repeatedEvents".to_owned(), json!(repeated));
    }
    Ok(result)
}

/// Reads the objects of a file: one per line if each line begins with a brace, else one.
fn read_objects<T: DeserializeOwned>(path: &Path) -> Result<Vec<Located<T>>, Error> {
    let file = path.display().to_string();
    let text = read(path).with_context(|| format!("cannot read {file}"))?;
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let is_lines = lines().count() > 1 && lines().all(|line| line.starts_with('{'));
    if !is_lines {
        return Ok(vec![decode(file, 1, text)?]);
    }
    let numbered = text.lines().enumerate();
    let numbered = numbered.filter(|(_, line)| !line.trim().is_empty());
    numbered
        .map(|(at, line)| decode(file.clone(), at.saturating_add(1), line.to_owned()))
        .collect()
}

fn read(path: &Path) -> Result<String, TextError> {
    if is_standard(path) {
        read_text(stdin().lock())
    } else {
        read_file(path)
    }
}

fn decode<T: DeserializeOwned>(
    file: String,
    first_line: usize,
    text: String,
) -> Result<Located<T>, Error> {
    // A trace has many jobs: JSON is decoded without the positions of all values.
    let value = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) if text.trim_start().starts_with('{') => {
            let line = first_line.saturating_add(error.line()).saturating_sub(1);
            let message = error.to_string();
            // The position is relative to the object.
            let message = message.split(" at line ").next().unwrap_or_default();
            return Err(anyhow!("{file}:{line}:{}: {message}", error.column()));
        }
        Err(_) => {
            let source = ParsedSource::parse(text.clone());
            let decoded = source.and_then(|source| source.decode());
            decoded.map_err(|error| match error.location {
                Some((line, column)) => anyhow!("{file}:{line}:{column}: {}", error.message),
                None => anyhow!("{file}: {}", error.message),
            })?
        }
    };
    Ok(Located {
        value,
        file,
        first_line,
        text,
    })
}

/// Adds the position of the field that an error names.
fn locate<T>(object: &Located<T>, error: &impl ToString) -> Error {
    let message = error.to_string();
    let file = &object.file;
    let path = message.split(": ").next().unwrap_or_default();
    let source = ParsedSource::parse(object.text.clone()).ok();
    let location = source.and_then(|source| {
        let document = source.documents.first()?;
        source.locate(document, &field_path(path))
    });
    match location {
        Some((line, column)) => {
            let line = object.first_line.saturating_add(line).saturating_sub(1);
            anyhow!("{file}:{line}:{column}: {message}")
        }
        None => anyhow!("{file}:{}: {message}", object.first_line),
    }
}

/// The path that a text such as `jobs[3].arrival` denotes.
fn field_path(text: &str) -> FieldPath {
    let mut path = FieldPath::default();
    for part in text.split('.') {
        let mut parts = part.split('[');
        path = path.key(parts.next().unwrap_or_default());
        for index in parts {
            let index = index.trim_end_matches(']').parse();
            path = path.index(index.unwrap_or_default());
        }
    }
    path
}
