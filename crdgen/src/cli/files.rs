//! Prints the output, writes it to a folder, or compares it with the existing files.

use super::error::Error;
use crate::files::{Document, differences};
use clap::Args;
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

impl Output {
    /// An output that is compared with the files of a folder.
    pub(super) fn for_check(folder: PathBuf) -> Self {
        Self {
            output_dir: None,
            check: Some(folder),
        }
    }

    /// Prints, writes or compares the documents. The `owned` folders have generated files only.
    pub(super) fn emit(
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
    write_text(&texts.join("---\n"), out)
}

/// A closed pipe, such as with `head`, is no error.
fn write_text(text: &str, out: &mut dyn Write) -> Result<(), Error> {
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
    let differences = differences(documents, owned, folder)?;
    for difference in &differences {
        write_text(difference, out)?;
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::Differs {
        files: differences.len(),
        folder: folder.to_owned(),
    })
}
