//! Generated files, and their comparison with the existing ones.

use crate::yaml::{self, YamlError};
use serde::Serialize;
use similar::TextDiff;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One object as text, and the name of the file for it.
pub(crate) struct Document {
    pub(crate) file: String,
    pub(crate) text: String,
}

/// An object has no YAML form. A test generates all objects of lockkeeper, which all have one.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file} as YAML; this is a defect, please report it")]
pub struct FileEncodeError {
    /// The file that the object would be in.
    pub file: String,
    /// The error of the serializer.
    pub source: YamlError,
}

/// A file or a folder to compare with the generated files cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}; name a readable folder with --check")]
pub struct FileReadError {
    /// The file or folder.
    pub path: PathBuf,
    /// The error of the system.
    pub source: io::Error,
}

impl Document {
    /// An object as YAML.
    pub(crate) fn from_object(
        file: String,
        object: &impl Serialize,
    ) -> Result<Self, FileEncodeError> {
        match yaml::document(object) {
            Ok(text) => Ok(Self { file, text }),
            Err(source) => Err(FileEncodeError { file, source }),
        }
    }
}

/// A unified diff for each file of a folder that differs from the generated one. The `owned` folders
/// have generated files only.
pub(crate) fn differences(
    documents: &[Document],
    owned: &[&str],
    folder: &Path,
) -> Result<Vec<String>, FileReadError> {
    let mut out = Vec::new();
    for document in documents {
        let path = folder.join(&document.file);
        let existing = read(&path)?;
        if existing.as_deref() != Some(&document.text) {
            let existing = existing.unwrap_or_default();
            out.push(difference(&path, &existing, &document.text));
        }
    }
    let known: BTreeSet<PathBuf> = documents.iter().map(|it| folder.join(&it.file)).collect();
    for name in owned {
        for path in files(&folder.join(name))? {
            // The file of an object that is no longer generated.
            if !known.contains(&path) {
                let existing = read(&path)?.unwrap_or_default();
                out.push(difference(&path, &existing, ""));
            }
        }
    }
    Ok(out)
}

/// A unified diff from the existing text to the generated one.
fn difference(path: &Path, existing: &str, emitted: &str) -> String {
    let name = path.display().to_string();
    let to = if emitted.is_empty() {
        "/dev/null"
    } else {
        "emitted"
    };
    let from = if existing.is_empty() {
        "/dev/null"
    } else {
        &name
    };
    let difference = TextDiff::from_lines(existing, emitted);
    let header = format!("{to} for {name}");
    difference.unified_diff().header(from, &header).to_string()
}

/// The text of a file; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<String>, FileReadError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileReadError {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The files in a folder and below, in the order of their paths. A missing folder has none.
fn files(folder: &Path) -> Result<Vec<PathBuf>, FileReadError> {
    let unread = |source| FileReadError {
        path: folder.to_owned(),
        source,
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(unread(source)),
    };
    let mut out = Vec::new();
    for entry in entries {
        let path = entry.map_err(unread)?.path();
        if path.is_dir() {
            // A link may form a loop, and no generated folder is one.
            if !path.is_symlink() {
                out.extend(files(&path)?);
            }
        } else {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}
