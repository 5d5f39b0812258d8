//! Edits of a text, and the checks that make them safe.

use crate::source::ParsedSource;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::schema::StructuralSchema;
use serde_json::Value;
use std::ops::Range;

/// A range of bytes, and the text that replaces it.
pub type Edit = (Range<usize>, String);

/// The text after these edits, if it parses to the intended objects.
pub fn apply_if_equivalent(
    source: &ParsedSource,
    edits: Vec<Edit>,
    intended: &[Value],
) -> Option<ParsedSource> {
    let after = apply_edits(&source.text, edits)?;
    // Parsing the result proves the edits: a wrong span would change another value.
    let parsed = ParsedSource::parse(after).ok()?;
    let is_intended = parsed.documents.iter().map(|it| &it.value).eq(intended);
    is_intended.then_some(parsed)
}

fn apply_edits(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (range, replacement) in edits {
        // `None` if edits overlap.
        out.push_str(text.get(at..range.start)?);
        out.push_str(&replacement);
        at = range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// The violations of the schema by an object with its defaults.
pub fn schema_violations(schema: &StructuralSchema, mut value: Value) -> Vec<Finding> {
    let mut violations = schema.prune(&mut value);
    schema.apply_defaults(&mut value);
    violations.extend(schema.check_shape(&value, None));
    violations
}
