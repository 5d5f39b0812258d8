//! Reads a scenario from a file.

use crate::configuration::nearest_key;
use anyhow::{Context, Error, anyhow};
use lockkeeper_check::{Identity, ParsedSource, ReadError};
use lockkeeper_crdgen::manifests::{TextError, read_file, read_text};
use lockkeeper_scenario::{FieldMistake, find_mistake};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::stdin;
use std::path::Path;

/// The selected scenario.
pub(super) struct SelectedScenario {
    pub(super) source: ParsedSource,
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
    pub(super) fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let decoded = self.source.decode();
        decoded.map_err(|mut error| {
            if let Some(near) = nearest_key(&error.message) {
                error.message = format!("{}; did you mean {near}?", error.message);
            }
            locate(&self.file, self.first_line, &error)
        })
    }

    /// Rejects files that are no scenario, and mistakes that the decoder ignores.
    pub(super) fn reject_mistakes(&self) -> Result<(), Error> {
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
    pub(super) fn place(&self) -> String {
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

/// Reads a file and selects the scenario with an id; without an id the only one.
pub(super) fn select_scenario(path: &Path, id: Option<&str>) -> Result<SelectedScenario, Error> {
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
        return match (id, selected.id()) {
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
    let Some(id) = id else {
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
