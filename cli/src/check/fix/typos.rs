//! Words that are misspelt.

use super::super::kinds::KindRegistry;
use super::super::source::{Document, ParsedSource};
use super::super::spans::YamlTree;
use super::{apply_if_equivalent, schema_violations};
use lockkeeper_api::field_path::unescaped;
use lockkeeper_policies::schema::{Correction, MisspeltPart, StructuralSchema};
use serde_json::Value;
use std::ops::Range;

/// The source with everything corrected that is safe, and how much that is.
pub(super) fn fix_typos(known: &KindRegistry, source: ParsedSource) -> (ParsedSource, usize) {
    let mut edits = Vec::new();
    let mut meant = Vec::new();
    // Most files are right: the text is parsed again only for one that is not.
    let mut tree = None;
    for document in &source.documents {
        let mut value = document.value.clone();
        let structure = known.structure(&value);
        let mut corrections = structure.map_or(Vec::new(), |it| it.corrections(&value));
        corrections.retain(|it| structure.is_some_and(|structure| is_safe(structure, &value, it)));
        for correction in corrections {
            let tree = tree.get_or_insert_with(|| YamlTree::new(&source.text));
            if let Some(edit) = correction_span(&source.text, tree, document, &correction)
                && apply_correction(&mut value, &correction).is_some()
            {
                edits.push((edit, correction.suggestion));
            }
        }
        meant.push(value);
    }
    let count = edits.len();
    if count == 0 {
        return (source, 0);
    }
    match apply_if_equivalent(&source, edits, &meant) {
        Some(corrected) => (corrected, count),
        None => (source, 0),
    }
}

/// Whether the correction makes nothing else wrong, such as a value that does not fit the field that was meant.
fn is_safe(structure: &StructuralSchema, value: &Value, correction: &Correction) -> bool {
    let mut after = value.clone();
    if apply_correction(&mut after, correction).is_none() {
        return false;
    }
    let (before, after) = (
        schema_violations(structure, value.clone()),
        schema_violations(structure, after),
    );
    after.len() < before.len() && after.iter().all(|it| before.contains(it))
}

/// Corrects a value. `None` if it is not there.
fn apply_correction(value: &mut Value, correction: &Correction) -> Option<()> {
    let pointer = correction.field.pointer();
    match correction.part {
        MisspeltPart::Value => {
            *value.pointer_mut(&pointer)? = correction.suggestion.as_str().into()
        }
        MisspeltPart::Name => {
            let (above, name) = pointer.rsplit_once('/')?;
            let name = unescaped(name);
            let fields = value.pointer_mut(above)?.as_object_mut()?;
            let moved = fields.remove(&name)?;
            fields.insert(correction.suggestion.clone(), moved);
        }
    }
    Some(())
}

/// The bytes to be replaced: those of the word, without quotes around it. Whatever is written in another way than it
/// reads (escapes, folded lines, an alias) is left alone.
fn correction_span(
    text: &str,
    tree: &YamlTree,
    document: &Document,
    correction: &Correction,
) -> Option<Range<usize>> {
    let pointer = correction.field.pointer();
    let whole = format!("{}{pointer}", document.pointer);
    let (range, word) = match correction.part {
        MisspeltPart::Name => {
            let name = pointer.rsplit('/').next()?;
            (tree.key_span(document.number, &whole)?, name.to_owned())
        }
        MisspeltPart::Value => {
            let word = document.value.pointer(&pointer)?.as_str()?;
            (tree.scalar_span(document.number, &whole)?, word.to_owned())
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
        .suggestion
        .bytes()
        .all(|it| it.is_ascii_alphanumeric());
    is_plain.then_some(inner)
}
