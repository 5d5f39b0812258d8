//! Reads and writes the annotations that preserve fields which a version lacks.
//!
//! Each field has a separate annotation, so that server-side apply can remove a field by applying an object without it: to
//! find the fields that an applier has dropped, the API server compares field ownership in each version, and in a version
//! without the field the owned field is the annotation.

use crate::difference::{Entry, format_path};
use crate::error::{ConvertErrorKind, PRESERVED_MAX_BYTES, VersionError};
use lockkeeper_api::field_path::FieldPath;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Prefix of the annotations that preserve fields which the object's version lacks.
pub const PRESERVED_ANNOTATION_PREFIX: &str = "kept-in-conversion.lockkeeper.dev/";

/// The maximum number of characters of the field path in an annotation's name. The path is for readers; the digest after it
/// makes the name unique. Kubernetes allows 63 characters.
const PATH_LENGTH_MAX: usize = 40;

/// The fields preserved in an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PreservedFields {
    /// Hub fields that the object's version lacks.
    pub(crate) hub: Vec<Entry>,
    /// Fields of other versions that the hub lacks, by version: fields that this build does not define, and alternative
    /// spellings of a value.
    pub(crate) own: BTreeMap<String, Vec<Entry>>,
    /// The first annotation that could not be read, with the reason.
    pub(crate) ignored: Option<String>,
}

/// The JSON value of an annotation.
#[derive(Deserialize, Serialize)]
struct AnnotationValue<E> {
    /// The version that the field belongs to; absent for the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(flatten)]
    entry: E,
}

/// Whether an annotation preserves a field.
pub(crate) fn is_preserved_annotation(annotation: &str) -> bool {
    annotation.starts_with(PRESERVED_ANNOTATION_PREFIX)
}

impl PreservedFields {
    /// Reads the annotations of an object.
    pub(crate) fn read(annotations: Option<&Map<String, Value>>) -> Self {
        let mut preserved = Self::default();
        let all = annotations.into_iter().flatten();
        let mut remaining_bytes = PRESERVED_MAX_BYTES;
        for (key, value) in all.filter(|(key, _)| is_preserved_annotation(key)) {
            match read_annotation(value, &mut remaining_bytes) {
                Ok(AnnotationValue { of: None, entry }) => preserved.hub.push(entry),
                Ok(AnnotationValue {
                    of: Some(version),
                    entry,
                }) => preserved.own.entry(version).or_default().push(entry),
                Err(reason) => {
                    preserved
                        .ignored
                        .get_or_insert_with(|| format!("{key}: {reason}"));
                }
            }
        }
        for entries in preserved.own.values_mut().chain([&mut preserved.hub]) {
            // Restore the order of a list last, when all of its items exist.
            entries.sort_by_key(Entry::is_order);
        }
        preserved
    }

    /// The annotations, or an error if they are too large together.
    pub(crate) fn write(&self) -> Result<BTreeMap<String, String>, ConvertErrorKind> {
        let own = self.own.iter().flat_map(|(version, entries)| {
            let pair = move |entry| (Some(version.clone()), entry);
            entries.iter().map(pair)
        });
        let hub = self.hub.iter().map(|entry| (None, entry));
        let mut out = BTreeMap::new();
        let mut bytes = 0_usize;
        for (of, entry) in hub.chain(own) {
            let name = annotation_name(of.as_deref(), entry);
            let text = serde_json::to_string(&AnnotationValue { of, entry });
            let text = text.map_err(|error| {
                let field = FieldPath::new("metadata.annotations").key(name.as_str());
                ConvertErrorKind::Incompatible(VersionError::new(field, error.to_string()))
            })?;
            bytes = bytes.saturating_add(name.len()).saturating_add(text.len());
            out.insert(name, text);
        }
        if bytes > PRESERVED_MAX_BYTES {
            return Err(ConvertErrorKind::PreservedFieldsTooLarge { bytes });
        }
        Ok(out)
    }
}

fn read_annotation(
    annotation: &Value,
    remaining_bytes: &mut usize,
) -> Result<AnnotationValue<Entry>, String> {
    let text = annotation.as_str().ok_or("the value is not a string")?;
    // Users may write annotations too: the limit bounds the work for parsing them.
    *remaining_bytes = remaining_bytes
        .checked_sub(text.len())
        .ok_or_else(|| format!("the annotations exceed {PRESERVED_MAX_BYTES} bytes in total"))?;
    // serde would also accept a JSON array, as the struct's fields in order.
    if !text.trim_start().starts_with('{') {
        return Err("the value is not a JSON object".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The name of the annotation for a field: it depends on the path, not on the value.
fn annotation_name(of: Option<&str>, entry: &Entry) -> String {
    let path = format_path(&entry.at);
    let is_allowed = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    let readable: String = path
        .chars()
        .filter(is_allowed)
        .take(PATH_LENGTH_MAX)
        .collect();
    // The name of an annotation must start with a letter or digit.
    let readable = readable.trim_start_matches(|it: char| !it.is_ascii_alphanumeric());
    let parts = [
        of.unwrap_or_default(),
        &path,
        if entry.is_order() { "[]" } else { "" },
    ];
    let digest = digest(&parts);
    match readable {
        "" => format!("{PRESERVED_ANNOTATION_PREFIX}{digest:016x}"),
        readable => format!("{PRESERVED_ANNOTATION_PREFIX}{readable}-{digest:016x}"),
    }
}

/// FNV-1a with 64 bits: it must be the same in every release. It need not resist collisions, because they can only damage an
/// object that their author may write anyway.
fn digest(parts: &[&str]) -> u64 {
    // The zero byte separates the parts: `a`, `b` and `ab` have different digests.
    let bytes = parts.iter().flat_map(|it| it.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
