//! The traces and configurations of `lockkeeper simulate`, from files of several formats or from a dump.

use super::arguments::{Arguments, InputArguments, is_standard};
use super::format::Format;
use crate::Failure;
use crate::world_source::load_dump;
use anyhow::{Context, Error, anyhow};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_check::ParsedSource;
use lockkeeper_crdgen::manifests::{TextError, read_file, read_text};
#[cfg(feature = "parquet")]
use lockkeeper_parquet_table::{ParquetTable, TimeText};
use lockkeeper_simulate::timeline::{JobTrace, TraceConfig};
use lockkeeper_trace_import::{
    DumpSettings, GeneratorFile, ImportError, ImportedTrace, Mapping, dump_trace, generator_trace,
    parse_csv, parse_swf,
};
#[cfg(feature = "parquet")]
use lockkeeper_trace_import::{TimeFormat, parse_rows};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Read, stdin};
use std::path::{Path, PathBuf};

/// The largest file of jobs: some ten million of them.
const JOBS_MAX_BYTES: u64 = 1 << 30;

/// Where the fields of a decoded object are.
pub(crate) enum Positions {
    /// In this text, whose first line has this number in the file, from 1.
    Text { text: String, first_line: usize },
    /// By job: its line.
    Lines(Vec<u64>),
    /// Nowhere: the objects of a cluster.
    None,
}

/// A decoded object and its position, for messages.
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) file: String,
    positions: Positions,
}

/// The input of all simulations.
pub(crate) struct Inputs {
    pub(crate) traces: Vec<Located<JobTrace>>,
    pub(crate) configs: Vec<Located<TraceConfig>>,
}

/// Reads the traces and the configurations.
pub(crate) fn read_all(arguments: &Arguments) -> Result<Inputs, Failure> {
    let configs = arguments.configs.iter().map(|it| read_located(it));
    let configs: Vec<_> = configs.collect::<Result<_, _>>().map_err(Failure::Usage)?;
    let traces = read_traces(&arguments.inputs, !configs.is_empty())?;
    Ok(Inputs { traces, configs })
}

/// Reads the traces. `has_config` says whether a configuration has their ClusterQueues.
pub(crate) fn read_traces(
    arguments: &InputArguments,
    has_config: bool,
) -> Result<Vec<Located<JobTrace>>, Failure> {
    let mut traces = read_files(arguments, has_config).map_err(Failure::Usage)?;
    if !arguments.dumps.is_empty() {
        traces.push(read_dump(arguments)?);
    }
    Ok(traces)
}

/// Reads the only object of a file.
pub(crate) fn read_object<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    read_located(path).map(|it| it.value)
}

fn read_located<T: DeserializeOwned>(path: &Path) -> Result<Located<T>, Error> {
    let mut found: Vec<Located<T>> = read_objects(path)?;
    match (found.pop(), found.is_empty()) {
        (Some(object), true) => Ok(object),
        _ => Err(anyhow!("{}: expected one object", path.display())),
    }
}

fn read_files(
    arguments: &InputArguments,
    has_config: bool,
) -> Result<Vec<Located<JobTrace>>, Error> {
    let mapping: Option<Mapping> = arguments.mapping.as_deref().map(read_object).transpose()?;
    let format_of = |path: &Path| arguments.format.unwrap_or_else(|| Format::for_path(path));
    let is_mapped = |path: &PathBuf| format_of(path).has_only_jobs();
    if mapping.is_some() && !arguments.traces.iter().any(is_mapped) {
        return Err(anyhow!(
            "--map has no effect: no file is in the format swf, csv or parquet; remove it, or add --format"
        ));
    }
    let mut traces = Vec::new();
    for path in &arguments.traces {
        let format = format_of(path);
        match format {
            Format::Trace => traces.extend(read_objects::<JobTrace>(path)?),
            Format::Generator => traces.push(read_generator(path)?),
            Format::Swf | Format::Csv | Format::Parquet => {
                if !has_config {
                    return Err(anyhow!(
                        "{}: the file has jobs only; give their ClusterQueues with --config",
                        path.display()
                    ));
                }
                let none = Mapping::default();
                let mapping = mapping.as_ref().unwrap_or(&none);
                traces.push(read_jobs(path, format, mapping)?);
            }
        }
    }
    Ok(traces)
}

fn read_generator(path: &Path) -> Result<Located<JobTrace>, Error> {
    let file = path.display().to_string();
    let text = read(path).with_context(|| format!("cannot read {file}"))?;
    let decoded: Located<GeneratorFile> = decode(file, 1, text)?;
    let trace = generator_trace(&decoded.value);
    let value = trace.map_err(|error| locate(&decoded, &error))?;
    Ok(Located {
        value,
        file: decoded.file,
        positions: Positions::None,
    })
}

fn read_jobs(path: &Path, format: Format, mapping: &Mapping) -> Result<Located<JobTrace>, Error> {
    let file = path.display().to_string();
    let bytes = read_large(path).with_context(|| format!("cannot read {file}"))?;
    let imported = if format == Format::Parquet {
        read_parquet(&file, bytes, mapping)
    } else {
        let text = String::from_utf8(bytes);
        let text = text.map_err(|error| anyhow!("cannot read {file}: {error}"))?;
        let imported = match format {
            Format::Swf => parse_swf(&text, mapping),
            _ => parse_csv(&text, mapping),
        };
        imported.map_err(|error| import_error(&file, &error))
    };
    let ImportedTrace { trace, lines } = imported?;
    Ok(Located {
        value: trace,
        file,
        positions: Positions::Lines(lines),
    })
}

/// Reads the jobs of a Parquet file.
#[cfg(feature = "parquet")]
fn read_parquet(file: &str, bytes: Vec<u8>, mapping: &Mapping) -> Result<ImportedTrace, Error> {
    // The library panics on some damaged files. The error says so; the text of the panic is of no use.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let imported = parquet_trace(file, bytes, mapping);
    std::panic::set_hook(hook);
    imported
}

#[cfg(feature = "parquet")]
fn parquet_trace(file: &str, bytes: Vec<u8>, mapping: &Mapping) -> Result<ImportedTrace, Error> {
    let times = match mapping.csv.times {
        TimeFormat::Seconds => TimeText::Seconds,
        TimeFormat::Milliseconds => TimeText::Milliseconds,
        TimeFormat::Rfc3339 => TimeText::Rfc3339,
    };
    let table = ParquetTable::open(bytes).with_context(|| file.to_owned())?;
    let is_read = |name: &str| mapping.csv.columns.names().any(|it| it == name);
    let rows = table
        .rows(is_read, times)
        .with_context(|| file.to_owned())?;
    let rows = rows.map(|row| row.map_err(|error| error.to_string()));
    parse_rows(&table.header(), rows, mapping).map_err(|error| import_error(file, &error))
}

/// The error of builds that do not read Parquet.
#[cfg(not(feature = "parquet"))]
fn read_parquet(file: &str, _: Vec<u8>, _: &Mapping) -> Result<ImportedTrace, Error> {
    Err(anyhow!(
        "{file}: this build does not read Parquet; build lockkeeper with --features parquet, or convert the file: \
         duckdb -c \"copy (from 'jobs.parquet') to 'jobs.csv'\""
    ))
}

fn import_error(file: &str, error: &ImportError) -> Error {
    match error.line {
        Some(line) => anyhow!("{file}:{line}: {error}"),
        None => anyhow!("{file}: {error}"),
    }
}

/// Reads the objects of all `--dump` paths as one cluster.
fn read_dump(arguments: &InputArguments) -> Result<Located<JobTrace>, Failure> {
    let world = load_dump(arguments.dumps.clone())?;
    let settings = DumpSettings {
        assumed_run_s: arguments.assumed_run_s,
    };
    let paths = arguments.dumps.iter();
    let paths: Vec<String> = paths.map(|it| it.display().to_string()).collect();
    let file = paths.join(", ");
    let trace = dump_trace(&world, settings)
        .map_err(|error| Failure::Usage(import_error(&file, &error)))?;
    Ok(Located {
        value: trace,
        file,
        positions: Positions::None,
    })
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

/// Reads a file of jobs, which may be larger than other texts.
fn read_large(path: &Path) -> Result<Vec<u8>, io::Error> {
    let from: Box<dyn Read> = if is_standard(path) {
        Box::new(stdin().lock())
    } else {
        Box::new(File::open(path)?)
    };
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the file is larger.
    let size = from
        .take(JOBS_MAX_BYTES.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if u64::try_from(size).unwrap_or(u64::MAX) > JOBS_MAX_BYTES {
        let limit = JOBS_MAX_BYTES >> 20;
        let message = format!("larger than {limit} MiB; split it into smaller files");
        return Err(io::Error::other(message));
    }
    Ok(bytes)
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
                Some((line, column)) => {
                    anyhow!("{file}:{line}:{column}: {}", error.message)
                }
                None => anyhow!("{file}: {}", error.message),
            })?
        }
    };
    Ok(Located {
        value,
        file,
        positions: Positions::Text { text, first_line },
    })
}

/// Adds the position of the field that an error names.
pub(crate) fn locate<T>(object: &Located<T>, error: &impl ToString) -> Error {
    let message = error.to_string();
    let file = &object.file;
    let path = message.split(": ").next().unwrap_or_default();
    match &object.positions {
        Positions::None => anyhow!("{file}: {message}"),
        Positions::Lines(lines) => match job_index(path).and_then(|at| lines.get(at)) {
            Some(line) => anyhow!("{file}:{line}: {message}"),
            None => anyhow!("{file}: {message}"),
        },
        Positions::Text { text, first_line } => {
            let source = ParsedSource::parse(text.clone()).ok();
            let location = source.and_then(|source| {
                let document = source.documents.first()?;
                source.locate(document, &field_path(path))
            });
            match location {
                Some((line, column)) => {
                    let line = first_line.saturating_add(line).saturating_sub(1);
                    anyhow!("{file}:{line}:{column}: {message}")
                }
                None => anyhow!("{file}:{first_line}: {message}"),
            }
        }
    }
}

/// Adds the line of the job that an error names, for a trace with another file of configuration.
pub(crate) fn locate_job<T>(object: &Located<T>, error: &impl ToString) -> String {
    let message = error.to_string();
    let path = message.split(": ").next().unwrap_or_default();
    match &object.positions {
        Positions::Lines(lines) => match job_index(path).and_then(|at| lines.get(at)) {
            Some(line) => format!("{}:{line}", object.file),
            None => object.file.clone(),
        },
        Positions::Text { .. } | Positions::None => object.file.clone(),
    }
}

/// The index of the job that a path such as `jobs[3].arrival` begins with.
fn job_index(path: &str) -> Option<usize> {
    let rest = path.strip_prefix("jobs[")?;
    let (index, _) = rest.split_once(']')?;
    index.parse().ok()
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

#[cfg(test)]
mod tests;
