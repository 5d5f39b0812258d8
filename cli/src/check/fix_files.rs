//! `--fix` and `--diff`: writes or prints corrected files.

use super::inputs::Input;
use crate::Failure;
use crate::file_replacement::write_file;
use anyhow::{Context, Error};
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_check::report::pluralize;
use lockkeeper_check::{FixedFile, Fixer, worker_pool};
use similar::TextDiff;
use std::io::{Write, stderr};

/// Unchanged lines around a change in a diff.
const CONTEXT_LINES: usize = 3;

/// The number of corrections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FixSummary {
    pub(super) typos_fixed: usize,
    pub(super) defaults_added: usize,
    pub(super) files: usize,
    /// Files that could not be read.
    pub(super) unreadable: usize,
}

/// Writes the corrected files, and replaces the text of standard input.
pub(super) fn write_fixes(fixer: &Fixer, inputs: &mut [Input]) -> Result<FixSummary, Failure> {
    let mut corrected = None;
    let summary = fix_each(fixer, inputs, |input, fixed| match input.file() {
        None => {
            corrected = Some(fixed.after);
            Ok(())
        }
        Some(path) => write_file(path, &fixed.after)
            .with_context(|| format!("cannot write {}", path.display())),
    })?;
    if let Some(text) = corrected
        && let Some(input) = inputs.iter_mut().find(|it| it.is_stdin())
    {
        input.set_stdin_text(text);
    }
    Ok(summary)
}

/// Prints the text of standard input, with its corrections. Returns whether there is one.
pub(super) fn print_stdin(
    inputs: &[Input],
    out: &mut (impl Write + Send),
) -> Result<bool, Failure> {
    let mut texts = inputs.iter().filter_map(Input::stdin_text);
    let Some(text) = texts.next() else {
        return Ok(false);
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(true)
}

/// Prints the corrections as a unified diff.
pub(super) fn print_fixes(
    fixer: &Fixer,
    inputs: &[Input],
    out: &mut (impl Write + Send),
) -> Result<FixSummary, Failure> {
    let summary = fix_each(fixer, inputs, |input, fixed| {
        let diff = TextDiff::from_lines(&fixed.before, &fixed.after);
        let mut diff = diff.unified_diff();
        diff.context_radius(CONTEXT_LINES);
        diff.header(&input.name, &input.name);
        Ok(write!(out, "{diff}")?)
    })?;
    out.flush()?;
    Ok(summary)
}

/// Fixes each file, and calls `consume` with those that change. The first error is returned; later files are not
/// written.
fn fix_each(
    fixer: &Fixer,
    inputs: &[Input],
    mut consume: impl FnMut(&Input, FixedFile) -> Result<(), Error> + Send,
) -> Result<FixSummary, Failure> {
    let mut summary = FixSummary::default();
    let mut result = Ok(());
    let work = |at: usize| {
        let read = inputs.get(at)?.read();
        Some(read.map(|source| fixer.fix(source)))
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
                Err(_) => summary.unreadable = summary.unreadable.saturating_add(1),
                Ok(done) => {
                    warn_skipped_defaults(input, &done.skipped_fields);
                    if done.before != done.after {
                        summary.typos_fixed = summary.typos_fixed.saturating_add(done.typos_fixed);
                        summary.defaults_added =
                            summary.defaults_added.saturating_add(done.defaults_added);
                        summary.files = summary.files.saturating_add(1);
                        result = consume(input, done);
                    }
                }
            }
        },
    );
    result?;
    Ok(summary)
}

/// Warns about defaults that were not added.
fn warn_skipped_defaults(input: &Input, skipped: &[FieldPath]) {
    if let Some(first) = skipped.first() {
        let fields = pluralize(skipped.len(), "default");
        // A closed standard error is ignored.
        let _ = writeln!(
            stderr(),
            "{}: {fields} not added, such as {first}: anchors, tags or empty fields prevent a safe edit; add it by hand",
            input.name
        );
    }
}
