//! `--fix`: puts right what has one obvious correction, fills in what is not given, and leaves everything else of a file
//! as it is.

mod defaults;
#[cfg(test)]
mod tests;
mod typos;
mod yaml_insert;

use super::kinds::KindRegistry;
use super::report;
use super::source::{Input, ParsedSource};
use super::worker_pool;
use crate::Failure;
use anyhow::{Context, Error};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::rule;
use lockkeeper_policies::schema::StructuralSchema;
use lockkeeper_policies::settings::Settings;
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
pub(super) struct Fixer {
    pub(super) kinds: KindRegistry,
    pub(super) index: Index,
    pub(super) settings: Settings,
}

/// A file as it should be.
struct FixedFile {
    before: String,
    after: String,
    typos_fixed: usize,
    defaults_added: usize,
    /// What nobody can fill in safely where it would have to stand.
    skipped_fields: Vec<FieldPath>,
}

/// A change of a text: what stands in place of these bytes.
type Edit = (Range<usize>, String);

/// What was put right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FixSummary {
    pub(super) typos_fixed: usize,
    pub(super) defaults_added: usize,
    pub(super) files: usize,
    /// What could not be read.
    pub(super) unreadable: usize,
}

/// Writes the corrected files. Standard input cannot be written.
pub(super) fn write_fixes(mender: &Fixer, inputs: &[Input]) -> Result<FixSummary, Failure> {
    fix_each(mender, inputs, |input, mended| match input.file() {
        None => Ok(()),
        Some(path) => replace_file(path, &mended.after)
            .with_context(|| format!("cannot write {}", path.display())),
    })
}

/// Prints what would be written, as a unified diff.
pub(super) fn print_fixes(
    mender: &Fixer,
    inputs: &[Input],
    out: &mut (impl Write + Send),
) -> Result<FixSummary, Failure> {
    let fixed = fix_each(mender, inputs, |input, mended| {
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
fn fix_each(
    mender: &Fixer,
    inputs: &[Input],
    mut take: impl FnMut(&Input, FixedFile) -> Result<(), Error> + Send,
) -> Result<FixSummary, Failure> {
    let mut fixed = FixSummary::default();
    let mut result = Ok(());
    let work = |at: usize| {
        let read = inputs.get(at)?.read();
        Some(read.map(|source| mender.fix(source)))
    };
    worker_pool::run_ordered(
        inputs.len(),
        worker_pool::thread_count(),
        work,
        |at, done| {
            let (Some(input), Some(done), true) = (inputs.get(at), done, result.is_ok()) else {
                return;
            };
            match done {
                Err(_) => fixed.unreadable = fixed.unreadable.saturating_add(1),
                Ok(done) => {
                    warn_skipped_defaults(input, &done.skipped_fields);
                    if done.before != done.after {
                        fixed.typos_fixed = fixed.typos_fixed.saturating_add(done.typos_fixed);
                        fixed.defaults_added =
                            fixed.defaults_added.saturating_add(done.defaults_added);
                        fixed.files = fixed.files.saturating_add(1);
                        result = take(input, done);
                    }
                }
            }
        },
    );
    result?;
    Ok(fixed)
}

/// Says what is not filled in. Who closed standard error does not want to know.
fn warn_skipped_defaults(input: &Input, left: &[FieldPath]) {
    if let Some(first) = left.first() {
        let fields = report::pluralize(left.len(), "default");
        let _ = writeln!(
            stderr(),
            "{}: {fields} not filled in, such as {first}: anchors, tags or empty fields are in the way; write it by hand",
            input.name
        );
    }
}

impl Fixer {
    /// The text with everything put right that is safe. What would not read exactly as it is meant is not done.
    fn fix(&self, source: ParsedSource) -> FixedFile {
        let before = source.text.clone();
        let (source, corrected) = typos::fix_typos(&self.kinds, source);
        let (after, filled, left) = defaults::add_defaults(self, source);
        FixedFile {
            before,
            after,
            typos_fixed: corrected,
            defaults_added: filled,
            skipped_fields: left,
        }
    }

    fn context(&self) -> rule::Context<'_> {
        rule::Context {
            cluster: &self.index,
            settings: &self.settings,
        }
    }
}

/// The text after these changes, if it reads as it is meant.
fn apply_if_equivalent(
    source: &ParsedSource,
    edits: Vec<Edit>,
    meant: &[Value],
) -> Option<ParsedSource> {
    let after = apply_edits(&source.text, edits)?;
    let read = ParsedSource::parse(after).ok()?;
    let is_meant = read.documents.iter().map(|it| &it.value).eq(meant);
    is_meant.then_some(read)
}

fn apply_edits(text: &str, mut edits: Vec<Edit>) -> Option<String> {
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
fn schema_violations(structure: &StructuralSchema, mut value: Value) -> Vec<Finding> {
    let mut faults = structure.prune(&mut value);
    structure.apply_defaults(&mut value);
    faults.extend(structure.check_shape(&value, None));
    faults
}

/// Writes a file beside it and puts that in its place, so that nobody ever sees half of it. A link stays one.
fn replace_file(path: &Path, text: &str) -> Result<(), Error> {
    let path = fs::canonicalize(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.tmp", process::id()));
    let done = write_and_rename(&path, &beside, text);
    if done.is_err() {
        // What matters is why it could not be written.
        let _ = fs::remove_file(&beside);
    }
    done
}

fn write_and_rename(path: &Path, beside: &Path, text: &str) -> Result<(), Error> {
    let mut file = fs::File::create_new(beside)?;
    file.set_permissions(fs::metadata(path)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(fs::rename(beside, path)?)
}
