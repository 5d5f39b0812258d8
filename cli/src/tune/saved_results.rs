//! The file of `--results`: results of earlier simulations, one JSON object per line.

use super::evaluation::Evaluated;
use anyhow::{Context, Error, anyhow};
use lockkeeper_crdgen::manifests::read_file;
use lockkeeper_simulate::tune::Candidate;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// The first line: what the results are of.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Header {
    /// The version that simulated.
    lockkeeper: String,
    /// A digest of the traces, the configuration, the goals and the fields.
    inputs: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    candidate: Candidate,
    #[serde(flatten)]
    evaluated: Evaluated,
}

/// Results of earlier runs, and the file for further ones.
#[derive(Debug, Default)]
pub(crate) struct SavedResults {
    known: BTreeMap<Candidate, Evaluated>,
    file: Option<File>,
}

impl SavedResults {
    /// Reads a file, or creates it. A last line that is cut off is ignored.
    pub(crate) fn open(path: &Path, inputs: String) -> Result<Self, Error> {
        let header = Header {
            lockkeeper: env!("CARGO_PKG_VERSION").to_owned(),
            inputs,
        };
        let shown = path.display();
        let text = if path.exists() {
            read_file(path).with_context(|| format!("cannot read {shown}"))?
        } else {
            String::new()
        };
        let mut known = BTreeMap::new();
        // A crash may cut the last line off.
        let complete = text
            .rfind('\n')
            .map_or("", |end| text.get(..end).unwrap_or_default());
        let mut lines = (1_u64..).zip(complete.lines());
        if let Some((_, first)) = lines.next() {
            let found: Header = serde_json::from_str(first)
                .map_err(|_| anyhow!("{shown}:1: no file of results; give another name"))?;
            if found != header {
                return Err(anyhow!(
                    "{shown}: its results are of other inputs or of another version; give another name, or remove it"
                ));
            }
        }
        for (number, text) in lines {
            let line: Line = serde_json::from_str(text)
                .map_err(|error| anyhow!("{shown}:{number}: {error}; remove the line"))?;
            known.insert(line.candidate, line.evaluated);
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path);
        let file = file
            .as_mut()
            .map_err(|error| anyhow!("cannot write {shown}: {error}"))?;
        let mut results = Self {
            known,
            file: Some(file.try_clone()?),
        };
        if complete.is_empty() {
            file.set_len(0)?;
            results.write(&header)?;
        } else {
            let length = complete.len().saturating_add(1);
            file.set_len(u64::try_from(length).unwrap_or(u64::MAX))?;
        }
        Ok(results)
    }

    /// The result of a candidate, if it is known.
    pub(crate) fn get(&self, candidate: &Candidate) -> Option<&Evaluated> {
        self.known.get(candidate)
    }

    /// Adds a result.
    pub(crate) fn add(
        &mut self,
        candidate: &Candidate,
        evaluated: &Evaluated,
    ) -> Result<(), Error> {
        if self.file.is_none() {
            return Ok(());
        }
        self.write(&Line {
            candidate: candidate.clone(),
            evaluated: evaluated.clone(),
        })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        if let Some(file) = &mut self.file {
            file.write_all(&text).context("cannot write the results")?;
        }
        Ok(())
    }
}

/// A digest of values, by their debug text; it is compared only with one of the same version.
pub(crate) fn digest(values: &[&dyn Debug]) -> String {
    let mut hasher = HashText(Sha256::new());
    for value in values {
        // A hasher takes all text.
        let _ = writeln!(hasher, "{value:?}");
    }
    let bytes = hasher.0.finalize();
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

struct HashText(Sha256);

impl std::fmt::Write for HashText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}
