//! Changes that a team accepts: a file with reasons, for `diff --accept`.

use super::Change;
use crate::manifests::{TextError, read_file};
use crate::yaml;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// An error of reading the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {path}; name a file with accepted changes with --accept")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: TextError,
    },
    /// The file is invalid.
    #[error("{path}:{reason}; give a list of {{code, definition, place, reason}}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The position and the problem.
        reason: String,
    },
}

/// An accepted change.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedChange {
    /// The code, such as `CD032`.
    code: String,
    /// The name of the definition.
    definition: String,
    /// The place as the report prints it; every place if it is absent.
    place: Option<String>,
    /// The reason.
    reason: String,
}

/// The changes that are not accepted, the number of accepted ones, and the entries without a change.
#[derive(Debug, Default)]
pub struct Acceptance {
    pub remaining: Vec<Change>,
    pub accepted: usize,
    pub unused: Vec<String>,
}

/// Reads the entries of a file.
pub fn read(path: &Path) -> Result<Vec<AcceptedChange>, Error> {
    let text = read_file(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })?;
    let invalid = |reason: String| Error::Invalid {
        path: path.to_owned(),
        reason,
    };
    let entries: Vec<AcceptedChange> = yaml::read(&text).map_err(invalid)?;
    match entries.iter().find(|it| it.reason.trim().is_empty()) {
        Some(entry) => Err(invalid(format!(" {} has no reason", entry.shown()))),
        None => Ok(entries),
    }
}

/// Removes the accepted changes.
pub fn apply(changes: Vec<Change>, entries: &[AcceptedChange]) -> Acceptance {
    let mut used = vec![false; entries.len()];
    let mut result = Acceptance::default();
    for change in changes {
        let mut is_accepted = false;
        for (entry, is_used) in entries.iter().zip(&mut used) {
            if entry.matches(&change) {
                is_accepted = true;
                *is_used = true;
            }
        }
        if is_accepted {
            result.accepted = result.accepted.saturating_add(1);
        } else {
            result.remaining.push(change);
        }
    }
    let unused = entries.iter().zip(used).filter(|(_, is_used)| !is_used);
    result.unused = unused.map(|(entry, _)| entry.shown()).collect();
    result
}

impl AcceptedChange {
    fn matches(&self, change: &Change) -> bool {
        let place = self.place.as_deref();
        self.code.eq_ignore_ascii_case(change.code.info().id)
            && self.definition == change.definition
            && place.is_none_or(|it| it == change.place.to_string())
    }

    fn shown(&self) -> String {
        let place = self.place.as_deref().unwrap_or("every place");
        format!("{} of {} at {place}", self.code, self.definition)
    }
}
