//! The command `diff`.

use super::render::{Output, Report};
use super::source::{self, Definitions, Source};
use super::{ChangeClass, StoredObjectOutcome, accepted_changes, check_stored_objects, compare};
use crate::structural::check::{NotStructural, check};
use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lockkeeper_policies::schema::SchemaError;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

/// The help text on sources and exit codes.
const SOURCES: &str = "OLD and NEW are a file, a folder, - for standard input, REVISION:PATH in Git's notation, or a \
                       revision, which implies the path of the other side.\n\n\
                       Exit codes: 0 compatible, or needs a storage migration; 1 a change is breaking, or an object would \
                       fail; 2 invalid command line, unreadable input, or a schema is not structural";

/// Arguments of `diff`.
#[derive(Clone, Debug, Args)]
#[command(after_help = SOURCES)]
pub struct Diff {
    /// Old CRDs
    #[arg(value_name = "OLD")]
    old: String,

    /// New CRDs
    #[arg(value_name = "NEW")]
    new: String,

    /// Stored objects, and declarations of kinds of jobs, to check against the new CRDs (kubectl get -o yaml)
    #[arg(long, value_name = "PATH")]
    objects: Vec<String>,

    /// Print only changes of these classes; repeatable
    #[arg(long, value_name = "CLASS", value_enum, value_delimiter = ',')]
    only: Vec<ChangeClass>,

    /// File with changes that are accepted, each with a reason
    #[arg(long, value_name = "FILE")]
    accept: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Output,
}

/// An error of the command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Both sides are standard input.
    #[error("OLD and NEW cannot both be standard input; give one of them as a file")]
    BothStdin,
    /// Something cannot be read.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The accepted changes cannot be read.
    #[error(transparent)]
    Accepted(#[from] accepted_changes::Error),
    /// No side has a definition.
    #[error("neither {old} nor {new} has a CustomResourceDefinition; give files that have one")]
    Nothing {
        /// The old side.
        old: String,
        /// The new side.
        new: String,
    },
    /// The API server would reject a new definition.
    #[error(transparent)]
    NotStructural(#[from] NotStructural),
    /// A schema cannot be compiled.
    #[error("a schema cannot be compiled: {0}")]
    Schema(#[from] SchemaError),
    /// The report cannot be formatted.
    #[error("cannot format the output; this is a bug, please report it")]
    Format(#[from] fmt::Error),
    /// The report cannot be written.
    #[error("cannot write the output")]
    Output(#[source] io::Error),
}

/// Compares the definitions, writes the report, and returns the worst class.
///
/// # Errors
///
/// When something cannot be read or decoded; each error has its remedy.
pub fn run(arguments: &Diff, out: &mut dyn Write) -> Result<ChangeClass, Error> {
    let (old, new) = (Source::parse(&arguments.old), Source::parse(&arguments.new));
    if old == Source::Stdin && new == Source::Stdin {
        return Err(Error::BothStdin);
    }
    let (before, after) = (old.definitions(&new)?, new.definitions(&old)?);
    if before.items.is_empty() && after.items.is_empty() {
        return Err(Error::Nothing {
            old: arguments.old.clone(),
            new: arguments.new.clone(),
        });
    }
    answer(arguments, &before, &after, out)
}

/// Compares a source with given definitions, as text.
pub(crate) fn against(
    old: &str,
    new: Vec<CustomResourceDefinition>,
    out: &mut dyn Write,
) -> Result<ChangeClass, Error> {
    // Given definitions have no path that a revision could imply.
    let before = Source::parse(old).definitions(&Source::Stdin)?;
    let after = Definitions {
        items: new,
        skipped: 0,
    };
    let arguments = Diff {
        old: old.to_owned(),
        new: String::new(),
        objects: Vec::new(),
        only: Vec::new(),
        accept: None,
        output: Output::default(),
    };
    answer(&arguments, &before, &after, out)
}

fn answer(
    arguments: &Diff,
    before: &Definitions,
    after: &Definitions,
    out: &mut dyn Write,
) -> Result<ChangeClass, Error> {
    after.items.iter().try_for_each(check)?;
    let entries = match &arguments.accept {
        Some(path) => accepted_changes::read(path)?,
        None => Vec::new(),
    };
    let changes = compare(&before.items, &after.items);
    let acceptance = accepted_changes::apply(changes, &entries);
    let mut skipped = before.skipped.saturating_add(after.skipped);
    let mut verdicts = Vec::new();
    for path in &arguments.objects {
        let objects = Source::Path(path.into()).objects()?;
        let (found, others) = check_stored_objects(&objects, &after.items)?;
        verdicts.extend(found);
        skipped = skipped.saturating_add(others);
    }
    verdicts.sort_by_key(|it| std::cmp::Reverse(it.outcome));
    let report = Report {
        changes: &acceptance.remaining,
        verdicts: (!arguments.objects.is_empty()).then_some(verdicts.as_slice()),
        skipped,
        only: &arguments.only,
        accepted: acceptance.accepted,
        unused: &acceptance.unused,
    };
    write(&report.text(arguments.output, is_coloured())?, out)?;
    let failing = verdicts
        .iter()
        .any(|it| it.outcome > StoredObjectOutcome::LosesFields);
    Ok(if failing {
        ChangeClass::Breaking
    } else {
        report.class()
    })
}

/// Whether to use colours: on a terminal, unless `NO_COLOR` is set.
fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
}

/// Ignores a closed pipe, such as with `head`.
fn write(text: &str, out: &mut dyn Write) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}
