//! What becomes of what is emitted: it is printed, written to a folder, or held against what is there.

use super::Error;
use crate::yaml;
use clap::Args;
use serde::Serialize;
use similar::TextDiff;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Where it goes; without a folder it is printed.
#[derive(Debug, Default, Args)]
pub(super) struct Output {
    /// Write one file for each object into this directory instead of printing them all
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,

    /// Write nothing: hold the files in this directory against what would be written, and print the difference
    ///
    /// Exits with 1 if there is one.
    #[arg(long, value_name = "DIR", conflicts_with = "output_dir")]
    check: Option<PathBuf>,
}

/// One object as text, and the name of the file for it.
pub(super) struct Document {
    pub(super) file: String,
    pub(super) text: String,
}

impl Document {
    /// An object as YAML.
    pub(super) fn of(file: String, object: &impl Serialize) -> Result<Self, Error> {
        match yaml::document(object) {
            Ok(text) => Ok(Self { file, text }),
            Err(source) => Err(Error::Yaml { name: file, source }),
        }
    }
}

impl Output {
    /// To be held against what is in a folder.
    pub(super) fn checking(folder: PathBuf) -> Self {
        Self {
            output_dir: None,
            check: Some(folder),
        }
    }

    /// Does with the documents what was asked for. In the `owned` folders there is nothing else.
    pub(super) fn deliver(
        &self,
        documents: &[Document],
        owned: &[&str],
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        match (&self.check, &self.output_dir) {
            (Some(folder), _) => check(documents, owned, folder, out),
            (None, Some(folder)) => write(documents, folder),
            (None, None) => print(documents, out),
        }
    }
}

fn write(documents: &[Document], folder: &Path) -> Result<(), Error> {
    for document in documents {
        let path = folder.join(&document.file);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|source| Error::Directory {
            path: parent.to_owned(),
            source,
        })?;
        fs::write(&path, &document.text).map_err(|source| Error::File { path, source })?;
    }
    Ok(())
}

fn print(documents: &[Document], out: &mut dyn Write) -> Result<(), Error> {
    let texts: Vec<&str> = documents.iter().map(|it| it.text.as_str()).collect();
    say(&texts.join("---\n"), out)
}

/// A reader that stops reading, as `head` does, is no error.
fn say(text: &str, out: &mut dyn Write) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

fn check(
    documents: &[Document],
    owned: &[&str],
    folder: &Path,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut differing = 0_usize;
    for document in documents {
        let path = folder.join(&document.file);
        let there = read(&path)?;
        if there.as_deref() != Some(&document.text) {
            differing = differing.saturating_add(1);
            let there = there.unwrap_or_default();
            say(&difference(&path, &there, &document.text), out)?;
        }
    }
    let known: BTreeSet<PathBuf> = documents.iter().map(|it| folder.join(&it.file)).collect();
    for name in owned {
        for path in files(&folder.join(name))? {
            if !known.contains(&path) {
                differing = differing.saturating_add(1);
                let there = read(&path)?.unwrap_or_default();
                say(&difference(&path, &there, ""), out)?;
            }
        }
    }
    if differing == 0 {
        Ok(())
    } else {
        Err(Error::Differs {
            files: differing,
            folder: folder.to_owned(),
        })
    }
}

/// A unified difference from what is there to what would be.
fn difference(path: &Path, there: &str, emitted: &str) -> String {
    let name = path.display().to_string();
    let to = if emitted.is_empty() {
        "/dev/null"
    } else {
        "emitted"
    };
    let from = if there.is_empty() { "/dev/null" } else { &name };
    let difference = TextDiff::from_lines(there, emitted);
    let header = format!("{to} for {name}");
    difference.unified_diff().header(from, &header).to_string()
}

/// The text of a file; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::ReadCommitted {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The files in a folder and below, in the order of their paths. There are none in one that is not there.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let unread = |source| Error::ReadCommitted {
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
            out.extend(files(&path)?);
        } else {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}
