//! `lockkeeper simulate`.

use crate::Failure;
use crate::report_format::to_pretty_json;
use crate::standard_output::print;
use anyhow::{Context, Error, anyhow};
use clap::{Args, ValueEnum};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_check::ParsedSource;
use lockkeeper_crdgen::manifests::{TextError, read_file, read_text};
use lockkeeper_simulate::timeline::{
    JobTrace, Timeline, TraceConfig, event_loop, simulate, utilization, write_summary,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
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
}

#[derive(Clone, Copy, Debug, ValueEnum)]
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

/// Simulates the traces with each configuration, and prints the results.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let text = run_all(arguments).map_err(Failure::Usage)?;
    Ok(print(text)?)
}

fn run_all(arguments: &Arguments) -> Result<String, Error> {
    let mut configs = Vec::new();
    for path in &arguments.configs {
        let mut found: Vec<Located<TraceConfig>> = read_objects(path)?;
        match (found.pop(), found.is_empty()) {
            (Some(config), true) => configs.push(config),
            _ => return Err(anyhow!("{}: expected one object", path.display())),
        }
    }
    let mut text = String::new();
    let mut results = Vec::new();
    for path in &arguments.traces {
        for trace in read_objects::<JobTrace>(path)? {
            if configs.is_empty() {
                let timeline = simulate(&trace.value).map_err(|e| locate(&trace, &e))?;
                add_result(
                    &mut text,
                    &mut results,
                    &trace,
                    None,
                    (&trace.value, timeline),
                )?;
            }
            for config in &configs {
                let changed = config.value.applied_to(&trace.value);
                // The mistake may be in either file, and is in the second if the trace alone is valid.
                let timeline = simulate(&changed)
                    .map_err(|error| anyhow!("{} with {}: {error}", trace.file, config.file))?;
                let config = Some(config.file.as_str());
                add_result(
                    &mut text,
                    &mut results,
                    &trace,
                    config,
                    (&changed, timeline),
                )?;
            }
        }
    }
    match arguments.output {
        Output::Human => Ok(text),
        Output::Json => to_pretty_json(&json!({"simulations": results})),
    }
}

/// Adds the summary and the JSON of one simulation.
fn add_result(
    text: &mut String,
    results: &mut Vec<Value>,
    trace: &Located<JobTrace>,
    config: Option<&str>,
    (simulated, timeline): (&JobTrace, Timeline),
) -> Result<(), Error> {
    let id = if trace.value.id.is_empty() {
        &trace.file
    } else {
        &trace.value.id
    };
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(id);
    if let Some(config) = config {
        text.push_str(", ");
        text.push_str(config);
    }
    text.push('\n');
    write_summary(text, simulated, &timeline)?;
    let mut result = serde_json::to_value(&timeline)?;
    if let Some(rows) = result.get_mut("usage").and_then(Value::as_array_mut) {
        for (row, usage) in rows.iter_mut().zip(&timeline.usage) {
            if let Some(row) = row.as_object_mut() {
                let part = utilization(simulated, &timeline, usage);
                row.insert("utilization".to_owned(), json!(part));
            }
        }
    }
    if let Some(result) = result.as_object_mut() {
        result.insert("id".to_owned(), json!(id));
        result.insert("config".to_owned(), json!(config));
        // The last events of a livelock are those that repeat.
        let repeated = event_loop(&timeline).len();
        result.insert("repeatedEvents".to_owned(), json!(repeated));
    }
    results.push(result);
    Ok(())
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
    if path.as_os_str() == "-" {
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
