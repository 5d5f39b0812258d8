//! What a version has no field for, in annotations.
//!
//! Each piece has an annotation of its own. In one annotation for all of them, nobody could take a piece away by applying
//! without it: where people apply in several versions, an API server finds out what an applier took back by comparing
//! fields in each of the versions, and there the field is the annotation.

use super::difference::{Entry, format_path};
use super::error::{ConvertErrorKind, VersionError};
use crate::field_path::FieldPath;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What the annotations begin with that keep what the version of an object has no field for.
pub const PRESERVED_ANNOTATION_PREFIX: &str = "kept-in-conversion.lockkeeper.dev/";

/// The most that these annotations may hold together, in bytes: half of what Kubernetes lets all annotations of an object
/// have.
pub const PRESERVED_MAX_BYTES: usize = 128 * 1024;

/// As many characters of the place are in the name of an annotation, for people. What tells two of them apart is the digest
/// after them; Kubernetes has room for 63 characters.
const PATH_LENGTH_MAX: usize = 40;

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PreservedFields {
    /// What the version lacks of the hub.
    pub(super) hub: Vec<Entry>,
    /// What objects of other versions had that the hub lacks, by version: fields that this build does not know, and ways
    /// to write a value.
    pub(super) own: BTreeMap<String, Vec<Entry>>,
    /// Which annotation was none of a conversion, and why; the first of them.
    pub(super) ignored: Option<String>,
}

/// A piece as it is written.
#[derive(Deserialize, Serialize)]
struct AnnotationValue<E> {
    /// The version it is of; without one it is of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(flatten)]
    entry: E,
}

/// Whether an annotation keeps something.
pub(super) fn is_preserved_annotation(annotation: &str) -> bool {
    annotation.starts_with(PRESERVED_ANNOTATION_PREFIX)
}

impl PreservedFields {
    /// What is in the annotations of an object.
    pub(super) fn read(annotations: Option<&Map<String, Value>>) -> Self {
        let mut kept = Self::default();
        let all = annotations.into_iter().flatten();
        let mut room = PRESERVED_MAX_BYTES;
        for (key, value) in all.filter(|(key, _)| is_preserved_annotation(key)) {
            match read_annotation(value, &mut room) {
                Ok(AnnotationValue { of: None, entry }) => kept.hub.push(entry),
                Ok(AnnotationValue {
                    of: Some(version),
                    entry,
                }) => kept.own.entry(version).or_default().push(entry),
                Err(reason) => {
                    kept.ignored
                        .get_or_insert_with(|| format!("{key}: {reason}"));
                }
            }
        }
        for entries in kept.own.values_mut().chain([&mut kept.hub]) {
            // A list is sorted when all of its items are there.
            entries.sort_by_key(Entry::is_order);
        }
        kept
    }

    /// The annotations.
    pub(super) fn write(&self) -> Result<BTreeMap<String, String>, ConvertErrorKind> {
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

fn read_annotation(annotation: &Value, room: &mut usize) -> Result<AnnotationValue<Entry>, String> {
    let text = annotation.as_str().ok_or("it is no text")?;
    *room = room
        .checked_sub(text.len())
        .ok_or_else(|| format!("all together are larger than {PRESERVED_MAX_BYTES} bytes"))?;
    // A list would be taken for its fields in their order.
    if !text.trim_start().starts_with('{') {
        return Err("it is no JSON object".to_owned());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The name of the annotation for a piece: the same for the same place, whatever stands there.
fn annotation_name(of: Option<&str>, entry: &Entry) -> String {
    let place = format_path(&entry.at);
    let is_allowed = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    let readable: String = place
        .chars()
        .filter(is_allowed)
        .take(PATH_LENGTH_MAX)
        .collect();
    let readable = readable.trim_start_matches(|it: char| !it.is_ascii_alphanumeric());
    let parts = [
        of.unwrap_or_default(),
        &place,
        if entry.is_order() { "[]" } else { "" },
    ];
    let digest = digest(&parts);
    match readable {
        "" => format!("{PRESERVED_ANNOTATION_PREFIX}{digest:016x}"),
        readable => format!("{PRESERVED_ANNOTATION_PREFIX}{readable}-{digest:016x}"),
    }
}

/// FNV-1a of 64 bits: it must be the same in every release. Who finds two places with the same digest harms an object that
/// is theirs to write.
fn digest(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|it| it.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
