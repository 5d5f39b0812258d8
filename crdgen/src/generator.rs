//! CRDs of any kinds that are written with `kube::CustomResource`: a binary or a `build.rs` of ten lines.
//!
//! ```no_run
//! # use lockkeeper_crdgen::Generator;
//! # fn main() -> std::process::ExitCode {
//! Generator::default()/* .kind::<Reservation>() */.main()
//! # }
//! ```

mod bounds;

use crate::definitions;
use crate::diff::cli::{self as compared, Diff};
use crate::diff::{ChangeClass, SchemaPath, name_of};
use crate::files::{Document, differences};
pub use crate::files::{FileEncodeError, FileReadError};
use crate::structural::{self, check};
use clap::{Args, Parser, Subcommand};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;
use std::error::Error as _;
use std::ffi::OsString;
use std::io::{self, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

/// The CRD of a kind with a structural schema: one type per node, enums as lists of values, bounded
/// quantities, no null.
///
/// # Errors
///
/// [`check::NotStructural`] with the path of each node that a CRD cannot express, such as an enum whose
/// variants hold different types.
pub fn crd<T: CustomResourceExt + JsonSchema>()
-> Result<CustomResourceDefinition, check::NotStructural> {
    let definition = definitions::definition::<T>(&structural::schema::<T>());
    check::check(&definition)?;
    Ok(definition)
}

/// The nodes of a CRD without a bound, by version. The API server cannot estimate the cost of a CEL rule
/// there, and rejects most of these rules.
#[must_use]
pub fn unbounded(definition: &CustomResourceDefinition) -> Vec<(String, SchemaPath)> {
    bounds::unbounded(definition)
}

/// An error of the generator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A kind has no structural schema.
    #[error(transparent)]
    NotStructural(#[from] check::NotStructural),
    /// A definition has no YAML form.
    #[error(transparent)]
    Unwritable(#[from] FileEncodeError),
    /// The existing files cannot be compared with the generated ones.
    #[error(transparent)]
    Unreadable(#[from] FileReadError),
    /// A file or a folder cannot be written.
    #[error("cannot write {path}; name a folder that you may write to")]
    Write {
        /// The file or the folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The output cannot be written to.
    #[error("cannot write the output; write to files with --output-dir instead")]
    Output(#[source] io::Error),
    /// Definitions cannot be compared.
    #[error(transparent)]
    Diff(#[from] compared::Error),
}

/// Generates the definitions of some kinds.
#[derive(Debug, Default)]
pub struct Generator {
    definitions: Vec<Result<CustomResourceDefinition, check::NotStructural>>,
}

/// The command line of a generator that a team builds.
#[derive(Debug, Parser)]
#[command(
    about = "Emits CRDs as YAML",
    after_help = "Exit codes: 0 done, 1 a file is behind, a change is breaking or a place has no bound, 2 it could not be done"
)]
struct GeneratorCli {
    #[command(subcommand)]
    command: Option<GeneratorCommand>,

    #[command(flatten)]
    emit: Emit,
}

#[derive(Debug, Args)]
struct Emit {
    /// Write one file for each definition into this folder instead of printing them all
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    output_dir: Option<PathBuf>,

    /// Write nothing: hold the files in this folder against what would be written, and print the difference
    ///
    /// Exits with 1 if there is one.
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum GeneratorCommand {
    /// Say what changes between two states of CRDs, and whom it hurts
    Diff(Diff),
    /// Say what changes from files, a folder or a revision to these kinds, and whom it hurts
    Changes {
        /// The definitions as they were
        #[arg(value_name = "OLD")]
        old: String,
    },
    /// List the places that have no bound
    Unbounded,
}

/// The result of a run without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No findings.
    Done,
    /// A difference, a breaking change or a node without a bound.
    Findings,
}

impl Generator {
    /// Adds a kind.
    #[must_use]
    pub fn kind<T: CustomResourceExt + JsonSchema>(mut self) -> Self {
        self.definitions.push(crd::<T>());
        self
    }

    /// Adds an existing CRD, such as one of several versions, which `kube::core::crd::merge_crds` merges
    /// from the result of [`crd`] for each.
    #[must_use]
    pub fn definition(mut self, definition: CustomResourceDefinition) -> Self {
        let checked = check::check(&definition).map(|()| definition);
        self.definitions.push(checked);
        self
    }

    /// Runs the command line of the process.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let error = match self.run(env::args_os(), &mut stdout().lock()) {
            Ok(Ok(Outcome::Done)) => return ExitCode::SUCCESS,
            Ok(Ok(Outcome::Findings)) => return ExitCode::FAILURE,
            Ok(Err(error)) => error,
            // clap chooses the stream and the exit code: help is not an error.
            Err(usage) => usage.exit(),
        };
        let cause = error.source().map(|cause| format!(": {cause}"));
        // A closed standard error is ignored: there is no other place to report to.
        let _ = writeln!(stderr(), "error: {error}{}", cause.unwrap_or_default());
        ExitCode::from(2)
    }

    /// Runs a command line; its first word is the name of the program.
    ///
    /// # Errors
    ///
    /// The outer error is for the command line, and also returns its help; the inner one is for the run.
    pub fn run<I, W>(
        self,
        words: I,
        out: &mut dyn Write,
    ) -> Result<Result<Outcome, Error>, clap::Error>
    where
        I: IntoIterator<Item = W>,
        W: Into<OsString> + Clone,
    {
        let line = GeneratorCli::try_parse_from(words)?;
        Ok(self.execute(&line, out))
    }

    /// Writes one file for each definition into a folder. A `build.rs` does nothing else.
    ///
    /// # Errors
    ///
    /// When a CRD cannot express a kind, or a file cannot be written.
    pub fn write_to(self, folder: &Path) -> Result<(), Error> {
        write_files(&self.files()?, folder)
    }

    fn execute(self, line: &GeneratorCli, out: &mut dyn Write) -> Result<Outcome, Error> {
        match &line.command {
            Some(GeneratorCommand::Diff(arguments)) => {
                return Ok(outcome(compared::run(arguments, out)?));
            }
            Some(GeneratorCommand::Changes { old }) => return self.changes(old, out),
            Some(GeneratorCommand::Unbounded) => return self.unbounded(out),
            None => {}
        }
        let files = self.files()?;
        if let Some(folder) = &line.emit.check {
            return check_files(&files, folder, out);
        }
        if let Some(folder) = &line.emit.output_dir {
            write_files(&files, folder)?;
        } else {
            let texts: Vec<&str> = files.iter().map(|it| it.text.as_str()).collect();
            write_text(&texts.join("---\n"), out)?;
        }
        Ok(Outcome::Done)
    }

    fn definitions(self) -> Result<Vec<CustomResourceDefinition>, Error> {
        let all: Result<Vec<_>, _> = self.definitions.into_iter().collect();
        Ok(all?)
    }

    fn files(self) -> Result<Vec<Document>, Error> {
        let each = self.definitions()?.into_iter().map(|definition| {
            let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
            Ok(Document::from_object(
                format!("{group}_{plural}.yaml"),
                &definition,
            )?)
        });
        each.collect()
    }

    fn changes(self, old: &str, out: &mut dyn Write) -> Result<Outcome, Error> {
        let new = self.definitions()?;
        Ok(outcome(compared::against(old, new, out)?))
    }

    fn unbounded(self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let mut outcome = Outcome::Done;
        for definition in self.definitions()? {
            for (version, path) in unbounded(&definition) {
                let name = name_of(&definition);
                write_text(&format!("{name} {version} {path}: give it a bound\n"), out)?;
                outcome = Outcome::Findings;
            }
        }
        Ok(outcome)
    }
}

fn outcome(class: ChangeClass) -> Outcome {
    match class {
        ChangeClass::Breaking => Outcome::Findings,
        ChangeClass::Compatible | ChangeClass::NeedsStorageMigration => Outcome::Done,
    }
}

fn write_files(files: &[Document], folder: &Path) -> Result<(), Error> {
    let failed = |path: &Path, source| Error::Write {
        path: path.to_owned(),
        source,
    };
    fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    for file in files {
        let path = folder.join(&file.file);
        fs::write(&path, &file.text).map_err(|source| failed(&path, source))?;
    }
    Ok(())
}

/// Prints the differences of the files in a folder, and their number.
fn check_files(files: &[Document], folder: &Path, out: &mut dyn Write) -> Result<Outcome, Error> {
    let differences = differences(files, &[], folder)?;
    for difference in &differences {
        write_text(difference, out)?;
    }
    if differences.is_empty() {
        return Ok(Outcome::Done);
    }
    let (count, shown) = (differences.len(), folder.display());
    let summary = format!(
        "out of date: {count} of the files in {shown}; rewrite them with --output-dir {shown}\n"
    );
    write_text(&summary, out)?;
    Ok(Outcome::Findings)
}

/// A closed pipe, such as with `head`, is no error.
fn write_text(text: &str, out: &mut dyn Write) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}
