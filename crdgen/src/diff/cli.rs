//! The command `diff`.

use super::render::{Output, Report};
use super::source::{self, Definitions, Source};
use super::{ChangeClass, StoredObjectOutcome, check_stored_objects, compare};
use crate::structural::check::{NotStructural, check};
use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lockkeeper_policies::schema::SchemaError;
use std::fmt;
use std::io::{self, IsTerminal, Write};

/// What may be compared, and how it ends.
const SOURCES: &str = "OLD and NEW are a file, a folder, - for standard input, REVISION:PATH as git writes it, or a \
                       revision alone, which stands for the path of the other side.\n\n\
                       Exit codes: 0 compatible, or needs a storage migration; 1 a change is breaking, or an object would \
                       fail; 2 the command line is wrong, something cannot be read, or a schema is not structural";

/// Comparing two states of CRDs.
#[derive(Clone, Debug, Args)]
#[command(after_help = SOURCES)]
pub struct Diff {
    /// The definitions as they were
    #[arg(value_name = "OLD")]
    old: String,

    /// The definitions as they are to be
    #[arg(value_name = "NEW")]
    new: String,

    /// A file or folder with stored objects, such as from kubectl get -o yaml; says which would fail
    #[arg(long, value_name = "PATH")]
    objects: Vec<String>,

    /// How the answer is written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Output,
}

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Both sides are standard input.
    #[error("OLD and NEW cannot both be standard input; give one of them as a file")]
    BothStdin,
    /// Something cannot be read.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// No side has a definition.
    #[error("neither {old} nor {new} holds a CustomResourceDefinition; name the files that do")]
    Nothing {
        /// The old side.
        old: String,
        /// The new side.
        new: String,
    },
    /// A new definition would be refused.
    #[error(transparent)]
    NotStructural(#[from] NotStructural),
    /// A schema cannot be asked.
    #[error("a schema cannot be compiled: {0}")]
    Schema(#[from] SchemaError),
    /// The answer cannot be put into words.
    #[error("the answer cannot be written; this is a defect, please report it")]
    Format(#[from] fmt::Error),
    /// The answer cannot be written.
    #[error("cannot write the answer")]
    Output(#[source] io::Error),
}

/// Compares, writes the answer, and says how bad it is.
///
/// # Errors
///
/// When something cannot be read or understood; each error says what, and what to do.
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

/// Compares a source with definitions that are at hand, for people.
pub(crate) fn against(
    old: &str,
    new: Vec<CustomResourceDefinition>,
    out: &mut dyn Write,
) -> Result<ChangeClass, Error> {
    // Nothing that is at hand has a path that a revision could have, too.
    let before = Source::parse(old).definitions(&Source::Stdin)?;
    let after = Definitions {
        items: new,
        skipped: 0,
    };
    let arguments = Diff {
        old: old.to_owned(),
        new: String::new(),
        objects: Vec::new(),
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
    let changes = compare(&before.items, &after.items);
    let mut skipped = before.skipped.saturating_add(after.skipped);
    let mut verdicts = Vec::new();
    for path in &arguments.objects {
        let objects = Source::Path(path.into()).objects()?;
        let (found, others) = check_stored_objects(&objects, &after.items)?;
        verdicts.extend(found);
        skipped = skipped.saturating_add(others);
    }
    verdicts.sort_by_key(|it| std::cmp::Reverse(it.fate));
    let report = Report {
        changes: &changes,
        verdicts: (!arguments.objects.is_empty()).then_some(verdicts.as_slice()),
        skipped,
    };
    write(&report.text(arguments.output, is_coloured())?, out)?;
    let failing = verdicts
        .iter()
        .any(|it| it.fate > StoredObjectOutcome::LosesFields);
    Ok(if failing {
        ChangeClass::Breaking
    } else {
        report.class()
    })
}

/// As `NO_COLOR` asks, and only for people.
fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
}

/// A reader that stops reading, as `head` does, is no error.
fn write(text: &str, out: &mut dyn Write) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}
