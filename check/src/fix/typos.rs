//! Corrects misspelt field names and enum values.

use super::edits::{apply_if_equivalent, schema_violations};
use crate::document::Document;
use crate::kinds::KindRegistry;
use crate::source::ParsedSource;
use lockkeeper_api::field_path::unescaped;
use lockkeeper_policies::schema::{Correction, MisspeltPart, StructuralSchema};
use serde_json::Value;
use std::ops::Range;

/// The source with all safe corrections, and their number.
pub fn fix_typos(kinds: &KindRegistry, source: ParsedSource) -> (ParsedSource, usize) {
    let mut edits = Vec::new();
    let mut intended = Vec::new();
    for document in &source.documents {
        let mut value = document.value.clone();
        let structure = kinds.structure(&value);
        let mut corrections = structure.map_or(Vec::new(), |it| it.corrections(&value));
        corrections.retain(|it| structure.is_some_and(|structure| is_safe(structure, &value, it)));
        for correction in corrections {
            if let Some(edit) = correction_span(&source, document, &correction)
                && apply_correction(&mut value, &correction).is_some()
            {
                edits.push((edit, correction.suggestion));
            }
        }
        intended.push(value);
    }
    let count = edits.len();
    if count == 0 {
        return (source, 0);
    }
    match apply_if_equivalent(&source, edits, &intended) {
        Some(corrected) => (corrected, count),
        None => (source, 0),
    }
}

/// Whether the correction adds no violation, such as a value of the wrong type for the suggested field.
fn is_safe(structure: &StructuralSchema, value: &Value, correction: &Correction) -> bool {
    let mut after = value.clone();
    if apply_correction(&mut after, correction).is_none() {
        return false;
    }
    let (before, after) = (
        schema_violations(structure, value.clone()),
        schema_violations(structure, after),
    );
    // The correction must remove a violation and add none.
    after.len() < before.len() && after.iter().all(|it| before.contains(it))
}

/// Corrects a value; `None` if the field does not exist.
fn apply_correction(value: &mut Value, correction: &Correction) -> Option<()> {
    let pointer = correction.field.pointer();
    match correction.part {
        MisspeltPart::Value => {
            *value.pointer_mut(&pointer)? = correction.suggestion.as_str().into();
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

/// The bytes of the word, without quotes. `None` if the text differs from the value (escapes, folded lines, an alias).
fn correction_span(
    source: &ParsedSource,
    document: &Document,
    correction: &Correction,
) -> Option<Range<usize>> {
    let pointer = correction.field.pointer();
    let full_pointer = format!("{}{pointer}", document.pointer);
    let tree = source.tree();
    let (range, word) = match correction.part {
        MisspeltPart::Name => {
            let name = pointer.rsplit('/').next()?;
            (
                tree.key_span(document.number, &full_pointer)?,
                name.to_owned(),
            )
        }
        MisspeltPart::Value => {
            let word = document.value.pointer(&pointer)?.as_str()?;
            (
                tree.scalar_span(document.number, &full_pointer)?,
                word.to_owned(),
            )
        }
    };
    let written = source.text.get(range.clone())?;
    let inner = if written == word {
        range
    } else {
        let is_quoted = [format!("\"{word}\""), format!("'{word}'")]
            .iter()
            .any(|it| it == written);
        let inner = range.start.checked_add(1)?..range.end.checked_sub(1)?;
        is_quoted.then_some(inner)?
    };
    // The suggestion must need no quotes either.
    let is_plain = correction
        .suggestion
        .bytes()
        .all(|it| it.is_ascii_alphanumeric());
    is_plain.then_some(inner)
}
