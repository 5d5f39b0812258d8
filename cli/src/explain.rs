//! `lockkeeper explain`.

mod node_scenarios;

use crate::Failure;
use crate::configuration::nearest_key;
use crate::standard_output::print;
use anyhow::{Context, Error, anyhow};
use clap::{Args, ValueEnum};
use lockkeeper_check::{Identity, ParsedSource, ReadError};
use lockkeeper_crdgen::manifests::{TextError, read_file, read_text};
use lockkeeper_preemption::{Compatibility, Entry, State};
use lockkeeper_scenario::explanation;
use lockkeeper_scenario::{
    FieldMistake, LoadedScenario, Scenario, compatibility, find_mistake, load,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::stdin;
use std::path::{Path, PathBuf};

/// Flags of `lockkeeper explain`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Scenario file (YAML, JSON, or one JSON object per line); `-` reads stdin
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,

    /// Id of the scenario, if the file has several
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Explain only this workload
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "human")]
    output: Output,

    /// Which scheduler to reproduce, known bugs included [default: the one that a scenario was recorded from, else
    /// lockkeeper]
    #[arg(long, value_name = "WHOSE")]
    compatibility: Option<CompatibilityTarget>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Human,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CompatibilityTarget {
    Lockkeeper,
    Kueue,
    KubeScheduler,
}

/// The selected scenario.
struct SelectedScenario {
    source: ParsedSource,
    /// The file, for messages.
    file: String,
    /// The line of the file at which the scenario starts, from 1.
    first_line: usize,
}

impl SelectedScenario {
    fn parse(text: String, file: String, first_line: usize) -> Result<Self, Error> {
        let source = ParsedSource::parse(text);
        let source = source.map_err(|error| locate(&file, first_line, &error))?;
        Ok(Self {
            source,
            file,
            first_line,
        })
    }

    /// The id of the scenario.
    fn id(&self) -> Option<&str> {
        self.source.documents.first()?.value.get("id")?.as_str()
    }

    /// Decodes the scenario. The error has the position of the field.
    fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let decoded = self.source.decode();
        decoded.map_err(|mut error| {
            if let Some(near) = nearest_key(&error.message) {
                error.message = format!("{}; did you mean {near}?", error.message);
            }
            locate(&self.file, self.first_line, &error)
        })
    }

    /// Rejects files that are no scenario, and mistakes that the decoder ignores.
    fn reject_mistakes(&self) -> Result<(), Error> {
        let shown = self.place();
        let documents = self.source.documents.as_slice();
        let manifest = documents
            .iter()
            .find(|it| it.value.get("apiVersion").is_some());
        if let Some(manifest) = manifest {
            let identity = Identity::from_object(&manifest.value);
            return Err(anyhow!(
                "{shown}: a manifest ({} of {}), not a scenario; docs/scenario.md describes scenarios",
                identity.kind,
                identity.api_version
            ));
        }
        let [document] = documents else {
            let count = documents.len();
            return Err(anyhow!("{shown}: expected one scenario, found {count}"));
        };
        if let Some(FieldMistake { field, message }) = find_mistake(&document.value) {
            let error = ReadError {
                location: self.source.locate(document, &field),
                message: format!("{field}: {message}"),
            };
            return Err(locate(&self.file, self.first_line, &error));
        }
        if document.value.get("clusterQueues").is_none() {
            return Err(anyhow!(
                "{shown}: neither clusterQueues nor nodes; docs/scenario.md describes scenarios"
            ));
        }
        Ok(())
    }

    /// The position, for errors without a field.
    fn place(&self) -> String {
        match self.first_line {
            1 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }
}

fn locate(file: &str, first_line: usize, error: &ReadError) -> Error {
    let message = &error.message;
    match error.location {
        Some((line, column)) => {
            let line = first_line.saturating_add(line).saturating_sub(1);
            anyhow!("{file}:{line}:{column}: {message}")
        }
        None if first_line > 1 => anyhow!("{file}:{first_line}: {message}"),
        None => anyhow!("{file}: {message}"),
    }
}

/// Decides the scenario, and prints the decision with its explanation.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let selected = select_scenario(arguments).map_err(Failure::Usage)?;
    if let Some(text) =
        node_scenarios::explain_node_scenario(&selected, arguments).map_err(Failure::Usage)?
    {
        return Ok(print(text)?);
    }
    selected.reject_mistakes().map_err(Failure::Usage)?;
    let scenario: Scenario = selected.decode().map_err(Failure::Usage)?;
    let compatibility = match arguments.compatibility {
        Some(CompatibilityTarget::Lockkeeper) => Compatibility::Lockkeeper,
        Some(CompatibilityTarget::Kueue) => Compatibility::Kueue,
        Some(CompatibilityTarget::KubeScheduler) => {
            return Err(Failure::Usage(anyhow!(
                "kube-scheduler has no queues; set --compatibility to kueue or lockkeeper"
            )));
        }
        None => compatibility(&scenario),
    };
    let shown = arguments.scenario.display();
    let loaded = load(&scenario, compatibility)
        .with_context(|| format!("{shown} is not a valid cluster state"))
        .map_err(Failure::Usage)?;
    let text = explain_scenario(&scenario, loaded, arguments).map_err(Failure::Usage)?;
    Ok(print(text)?)
}

fn select_scenario(arguments: &Arguments) -> Result<SelectedScenario, Error> {
    let path = &arguments.scenario;
    let shown = path.display().to_string();
    let text = read(path).with_context(|| format!("cannot read {shown}"))?;
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    // In one indented JSON object, not every line begins with a brace.
    let is_lines = lines.len() > 1 && lines.iter().all(|line| line.starts_with('{'));
    if !is_lines {
        let selected = SelectedScenario::parse(text, shown, 1)?;
        return match (&arguments.id, selected.id()) {
            (Some(wanted), found) if found != Some(wanted) => {
                let found = found.map_or("no id".to_owned(), |it| format!("the id {it:?}"));
                Err(anyhow!(
                    "{} has no scenario {wanted:?}: it has {found}",
                    selected.file
                ))
            }
            _ => Ok(selected),
        };
    }
    let Some(id) = &arguments.id else {
        let count = lines.len();
        return Err(anyhow!(
            "{shown} has {count} scenarios; choose one with --id"
        ));
    };
    for (at, line) in lines.into_iter().enumerate() {
        let line_number = at.saturating_add(1);
        let value: Value = serde_json::from_str(line)
            .with_context(|| format!("{shown}:{line_number} is not JSON"))?;
        if value.get("id").and_then(Value::as_str) == Some(id) {
            return SelectedScenario::parse(line.to_owned(), shown, line_number);
        }
    }
    Err(anyhow!("{shown} has no scenario {id:?}"))
}

fn read(path: &Path) -> Result<String, TextError> {
    if path.as_os_str() == "-" {
        read_text(stdin().lock())
    } else {
        read_file(path)
    }
}

fn explain_scenario(
    scenario: &Scenario,
    mut loaded: LoadedScenario,
    arguments: &Arguments,
) -> Result<String, Error> {
    let Some(id) = loaded.incoming else {
        return explain_cycle(scenario, &mut loaded.state, arguments);
    };
    let incoming = loaded.state.workload_name(id);
    if let Some(wanted) = &arguments.workload
        && wanted != incoming
    {
        return Err(anyhow!(
            "{wanted:?} is not the incoming workload, which is {incoming:?}; a scenario with incoming explains only that one"
        ));
    }
    let nomination = loaded.nominate(scenario);
    let nomination = nomination.ok_or_else(|| anyhow!("the incoming workload does not exist"))?;
    let state = &loaded.state;
    let name = state.workload_name(id);
    match arguments.output {
        Output::Json => to_pretty_json(&explanation::nomination_json(state, name, &nomination)),
        Output::Human => {
            let mut text = String::new();
            explanation::write_nomination(&mut text, state, name, &nomination)?;
            Ok(text)
        }
    }
}

fn explain_cycle(
    scenario: &Scenario,
    state: &mut State,
    arguments: &Arguments,
) -> Result<String, Error> {
    let cycle = state.next_cycle(scenario.now, true);
    let is_wanted = |entry: &&Entry| {
        let wanted = arguments.workload.as_deref();
        wanted.is_none_or(|name| state.workload_name(entry.workload) == name)
    };
    let entries: Vec<&Entry> = cycle.entries.iter().filter(is_wanted).collect();
    if let Some(name) = &arguments.workload
        && entries.is_empty()
    {
        let why = match state.workload(name) {
            Some(_) => "it is not at the head of its queue, or the queue admits nothing",
            None => "the workload does not exist",
        };
        return Err(anyhow!("{name:?} is not part of this cycle: {why}"));
    }
    match arguments.output {
        Output::Json => {
            let entries: Vec<Value> = entries
                .iter()
                .map(|it| explanation::entry_json(state, it))
                .collect();
            to_pretty_json(&json!({"entries": entries}))
        }
        Output::Human => {
            let mut text = String::new();
            for (at, entry) in entries.into_iter().enumerate() {
                if at > 0 {
                    text.push('\n');
                }
                explanation::write_entry(&mut text, state, entry)?;
            }
            if text.is_empty() {
                text.push_str("no pending workload at the head of an active queue\n");
            }
            Ok(text)
        }
    }
}

fn to_pretty_json(value: &Value) -> Result<String, Error> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}
