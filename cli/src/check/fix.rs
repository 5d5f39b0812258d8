//! `--fix`: puts right what has one obvious correction, fills in what is not given, and leaves everything else of a file
//! as it is.

mod correct;
mod fill;
mod insert;
#[cfg(test)]
mod tests;

use super::crew;
use super::kinds::Known;
use super::report;
use super::source::{Input, Source};
use crate::Failure;
use anyhow::{Context, Error};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::rule;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::structure::Structure;
use serde_json::Value;
use similar::TextDiff;
use std::fs;
use std::io::{Write, stderr};
use std::ops::Range;
use std::path::Path;
use std::process;

/// How many lines a diff shows around what changes.
const CONTEXT_LINES: usize = 3;

/// What is known when files are put right.
pub(super) struct Mender {
    pub(super) known: Known,
    pub(super) world: Index,
    pub(super) settings: Settings,
}

/// A file as it should be.
struct Mended {
    before: String,
    after: String,
    corrected: usize,
    filled: usize,
    /// What nobody can fill in safely where it would have to stand.
    left: Vec<FieldPath>,
}

/// A change of a text: what stands in place of these bytes.
type Edit = (Range<usize>, String);

/// What was put right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) corrected: usize,
    pub(super) filled: usize,
    pub(super) files: usize,
    /// What could not be read.
    pub(super) unreadable: usize,
}

/// Writes the corrected files. Standard input cannot be written.
pub(super) fn write(mender: &Mender, inputs: &[Input]) -> Result<Fixed, Failure> {
    each(mender, inputs, |input, mended| match input.file() {
        None => Ok(()),
        Some(path) => {
            replace(path, &mended.after).with_context(|| format!("cannot write {}", path.display()))
        }
    })
}

/// Prints what would be written, as a unified diff.
pub(super) fn print(
    mender: &Mender,
    inputs: &[Input],
    out: &mut (impl Write + Send),
) -> Result<Fixed, Failure> {
    let fixed = each(mender, inputs, |input, mended| {
        let diff = TextDiff::from_lines(&mended.before, &mended.after);
        let mut diff = diff.unified_diff();
        diff.context_radius(CONTEXT_LINES);
        diff.header(&input.name, &input.name);
        Ok(write!(out, "{diff}")?)
    })?;
    out.flush()?;
    Ok(fixed)
}

/// Puts every file right on its own, and hands over those that change. The first error is the answer; the files after
/// it are left as they are.
fn each(
    mender: &Mender,
    inputs: &[Input],
    mut take: impl FnMut(&Input, Mended) -> Result<(), Error> + Send,
) -> Result<Fixed, Failure> {
    let mut fixed = Fixed::default();
    let mut result = Ok(());
    let work = |at: usize| {
        let read = inputs.get(at)?.read();
        Some(read.map(|source| mender.mend(source)))
    };
    crew::in_order(inputs.len(), crew::threads(), work, |at, done| {
        let (Some(input), Some(done), true) = (inputs.get(at), done, result.is_ok()) else {
            return;
        };
        match done {
            Err(_) => fixed.unreadable = fixed.unreadable.saturating_add(1),
            Ok(done) => {
                warn(input, &done.left);
                if done.before != done.after {
                    fixed.corrected = fixed.corrected.saturating_add(done.corrected);
                    fixed.filled = fixed.filled.saturating_add(done.filled);
                    fixed.files = fixed.files.saturating_add(1);
                    result = take(input, done);
                }
            }
        }
    });
    result?;
    Ok(fixed)
}

/// Says what is not filled in. Who closed standard error does not want to know.
fn warn(input: &Input, left: &[FieldPath]) {
    if let Some(first) = left.first() {
        let fields = report::counted(left.len(), "default");
        let _ = writeln!(
            stderr(),
            "{}: {fields} not filled in, such as {first}: anchors, tags or empty fields are in the way; write it by hand",
            input.name
        );
    }
}

impl Mender {
    /// The text with everything put right that is safe. What would not read exactly as it is meant is not done.
    fn mend(&self, source: Source) -> Mended {
        let before = source.text.clone();
        let (source, corrected) = correct::corrected(&self.known, source);
        let (after, filled, left) = fill::filled(self, source);
        Mended {
            before,
            after,
            corrected,
            filled,
            left,
        }
    }

    fn context(&self) -> rule::Context<'_> {
        rule::Context {
            world: &self.world,
            settings: &self.settings,
        }
    }
}

/// The text after these changes, if it reads as it is meant.
fn checked(source: &Source, edits: Vec<Edit>, meant: &[Value]) -> Option<Source> {
    let after = edited(&source.text, edits)?;
    let read = Source::parse(after).ok()?;
    let is_meant = read.documents.iter().map(|it| &it.value).eq(meant);
    is_meant.then_some(read)
}

fn edited(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, word) in edits {
        out.push_str(text.get(at..range.start)?);
        out.push_str(&word);
        at = range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// What is wrong with the shape of an object once its defaults are filled in.
fn faults(structure: &Structure, mut value: Value) -> Vec<Finding> {
    let mut faults = structure.prune(&mut value);
    structure.fill(&mut value);
    faults.extend(structure.shape(&value, None));
    faults
}

/// Writes a file beside it and puts that in its place, so that nobody ever sees half of it. A link stays one.
fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let path = fs::canonicalize(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.tmp", process::id()));
    let done = fill(&path, &beside, text);
    if done.is_err() {
        // What matters is why it could not be written.
        let _ = fs::remove_file(&beside);
    }
    done
}

fn fill(path: &Path, beside: &Path, text: &str) -> Result<(), Error> {
    let mut file = fs::File::create_new(beside)?;
    file.set_permissions(fs::metadata(path)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(fs::rename(beside, path)?)
}
