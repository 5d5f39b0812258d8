//! `--fix`: puts right what has one obvious correction, and leaves everything else of a file as it is.

use super::crew;
use super::kinds::Known;
use super::lines::Tree;
use super::source::{Document, Input, Source};
use crate::Failure;
use anyhow::{Context, Error};
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::structure::{Correction, Part, Structure};
use serde_json::Value;
use similar::TextDiff;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process;

/// How many lines a diff shows around what changes.
const CONTEXT_LINES: usize = 3;

/// A file as it should be.
struct Mended {
    before: String,
    after: String,
    count: usize,
}

/// What was put right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fixed {
    pub(super) fields: usize,
    pub(super) files: usize,
    /// What could not be read.
    pub(super) unreadable: usize,
}

/// Writes the corrected files. Standard input cannot be written.
pub(super) fn write(known: &Known, inputs: &[Input]) -> Result<Fixed, Failure> {
    each(known, inputs, |input, mended| match input.file() {
        None => Ok(()),
        Some(path) => {
            replace(path, &mended.after).with_context(|| format!("cannot write {}", path.display()))
        }
    })
}

/// Prints what would be written, as a unified diff.
pub(super) fn print(
    known: &Known,
    inputs: &[Input],
    out: &mut (impl Write + Send),
) -> Result<Fixed, Failure> {
    let fixed = each(known, inputs, |input, mended| {
        let diff = TextDiff::from_lines(&mended.before, &mended.after);
        let mut diff = diff.unified_diff();
        diff.context_radius(CONTEXT_LINES);
        diff.header(&input.name, &input.name);
        Ok(write!(out, "{diff}")?)
    })?;
    out.flush()?;
    Ok(fixed)
}

/// Corrects every file on its own, and hands over those that change. The first error is the answer; the files after it
/// are left as they are.
fn each(
    known: &Known,
    inputs: &[Input],
    mut take: impl FnMut(&Input, Mended) -> Result<(), Error> + Send,
) -> Result<Fixed, Failure> {
    let mut fixed = Fixed::default();
    let mut result = Ok(());
    let work = |at: usize| {
        let read = inputs.get(at)?.read();
        Some(read.map(|source| mend(known, source)))
    };
    crew::in_order(inputs.len(), crew::threads(), work, |at, done| {
        let (Some(input), Some(done), true) = (inputs.get(at), done, result.is_ok()) else {
            return;
        };
        match done {
            Err(_) => fixed.unreadable = fixed.unreadable.saturating_add(1),
            Ok(None) => {}
            Ok(Some(mended)) => {
                fixed.fields = fixed.fields.saturating_add(mended.count);
                fixed.files = fixed.files.saturating_add(1);
                result = take(input, mended);
            }
        }
    });
    result?;
    Ok(fixed)
}

/// The text with everything put right that is safe; `None` if there is nothing, or if the result would not be exactly
/// what is meant.
fn mend(known: &Known, source: Source) -> Option<Mended> {
    let mut edits = Vec::new();
    let mut expected = Vec::new();
    // Most files are right: the text is parsed again only for one that is not.
    let mut tree = None;
    for document in &source.documents {
        let mut value = document.value.clone();
        let structure = known.structure(&value);
        let mut corrections = structure.map_or(Vec::new(), |it| it.corrections(&value));
        corrections.retain(|it| structure.is_some_and(|structure| is_safe(structure, &value, it)));
        for correction in corrections {
            let tree = tree.get_or_insert_with(|| Tree::new(&source.text));
            if let Some(edit) = edit(&source.text, tree, document, &correction) {
                apply(&mut value, &correction)?;
                edits.push((edit, correction.meant));
            }
        }
        expected.push(value);
    }
    if edits.is_empty() {
        return None;
    }
    let count = edits.len();
    let after = edited(&source.text, edits)?;
    let read = Source::parse(after.clone()).ok()?;
    let is_meant = read.documents.len() == expected.len()
        && read.documents.iter().map(|it| &it.value).eq(&expected);
    is_meant.then_some(Mended {
        before: source.text,
        after,
        count,
    })
}

/// Whether the correction makes nothing else wrong, such as a value that does not fit the field that was meant.
fn is_safe(structure: &Structure, value: &Value, correction: &Correction) -> bool {
    let mut after = value.clone();
    if apply(&mut after, correction).is_none() {
        return false;
    }
    let (before, after) = (faults(structure, value.clone()), faults(structure, after));
    after.len() < before.len() && after.iter().all(|it| before.contains(it))
}

fn faults(structure: &Structure, mut value: Value) -> Vec<Finding> {
    let mut faults = structure.prune(&mut value);
    structure.fill(&mut value);
    faults.extend(structure.shape(&value, None));
    faults
}

/// Corrects a value. `None` if it is not there.
fn apply(value: &mut Value, correction: &Correction) -> Option<()> {
    let pointer = correction.field.pointer();
    match correction.part {
        Part::Value => *value.pointer_mut(&pointer)? = correction.meant.as_str().into(),
        Part::Name => {
            let (above, name) = pointer.rsplit_once('/')?;
            let name = name.replace("~1", "/").replace("~0", "~");
            let fields = value.pointer_mut(above)?.as_object_mut()?;
            let moved = fields.remove(&name)?;
            fields.insert(correction.meant.clone(), moved);
        }
    }
    Some(())
}

/// The bytes to be replaced: those of the word, without quotes around it. Whatever is written in another way than it
/// reads (escapes, folded lines, an alias) is left alone.
fn edit(
    text: &str,
    tree: &Tree,
    document: &Document,
    correction: &Correction,
) -> Option<Range<usize>> {
    let pointer = correction.field.pointer();
    let whole = format!("{}{pointer}", document.pointer);
    let (range, word) = match correction.part {
        Part::Name => {
            let name = pointer.rsplit('/').next()?;
            (tree.key(document.number, &whole)?, name.to_owned())
        }
        Part::Value => {
            let word = document.value.pointer(&pointer)?.as_str()?;
            (tree.scalar(document.number, &whole)?, word.to_owned())
        }
    };
    let written = text.get(range.clone())?;
    let inner = if written == word {
        range
    } else {
        let is_quoted = [format!("\"{word}\""), format!("'{word}'")]
            .iter()
            .any(|it| it == written);
        let inner = range.start.checked_add(1)?..range.end.checked_sub(1)?;
        is_quoted.then_some(inner)?
    };
    // A word that needs no quotes where the other did not.
    let is_plain = correction
        .meant
        .bytes()
        .all(|it| it.is_ascii_alphanumeric());
    is_plain.then_some(inner)
}

fn edited(text: &str, mut edits: Vec<(Range<usize>, String)>) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::{Known, Source, mend, replace};
    use crate::check::choice::Choice;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    /// What becomes of a text; nothing if it stays as it is.
    fn check(before: &str, after: &str) {
        let Ok(known) = Known::new(&Choice::default()) else {
            panic!("the schemas can be read");
        };
        let source = Source::parse(before.to_owned()).unwrap();
        let mended = mend(&known, source).map_or(before.to_owned(), |it| it.after);
        assert_eq!(mended, after);
    }

    const HEAD: &str =
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\n";

    #[test]
    fn comments_and_layout_stay() {
        check(
            &format!(
                "# one\n{HEAD}spec:   # two\n  # three\n  cohort:   'x'  # four\r\n  \"stoppolicy\": Hold\n"
            ),
            &format!(
                "# one\n{HEAD}spec:   # two\n  # three\n  cohortName:   'x'  # four\r\n  \"stopPolicy\": Hold\n"
            ),
        );
        check(
            &format!("a: é\n---\n{HEAD}spec: {{cohort: b, stopPolicy: \"hold\"}}"),
            &format!("a: é\n---\n{HEAD}spec: {{cohortName: b, stopPolicy: \"Hold\"}}"),
        );
        check(
            "{\"kind\": \"List\", \"items\": [{\"apiVersion\": \"kueue.x-k8s.io/v1beta2\",\n \"kind\": \"Cohort\", \"spec\": {\"parent\": \"a\"}}]}",
            "{\"kind\": \"List\", \"items\": [{\"apiVersion\": \"kueue.x-k8s.io/v1beta2\",\n \"kind\": \"Cohort\", \"spec\": {\"parentName\": \"a\"}}]}",
        );
    }

    #[test]
    fn what_is_not_sure_stays() {
        for spec in [
            // The field that is meant stands there already, or its value does not fit.
            "{cohort: a, cohortName: b}",
            "{cohort: {a: b}}",
            // The word is written in another way than it reads.
            "{\"coh\\u006frt\": a}",
            // The value that is wrong stands elsewhere.
            "{stopPolicy: &a hold, colour: *a}",
            "{colour: &a hold, stopPolicy: *a}",
            "{cohortName: a}",
        ] {
            let text = format!("{HEAD}spec: {spec}\n");
            check(&text, &text);
        }
        // v1beta1 calls it that.
        let old = format!("{HEAD}spec: {{cohort: a}}\n").replace("v1beta2", "v1beta1");
        check(&old, &old);
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_rights() {
        let folder = TempDir::new().unwrap();
        let (file, link) = (folder.path().join("a.yaml"), folder.path().join("b.yaml"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(replace(&folder.path().join("none"), "new").is_err());
    }
}
