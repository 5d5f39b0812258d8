//! The patches that kustomizations name: parts of objects, not objects.

use super::inputs::Input;
use lockkeeper_check::ParsedSource;
use lockkeeper_crdgen::manifests::read_file;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The names of a kustomization.
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The fields of a kustomization that name patches.
const PATCH_FIELDS: [&str; 3] = ["patches", "patchesStrategicMerge", "patchesJson6902"];

/// Marks the inputs that a kustomization in their folder or in the one above names as patches. A kustomization that
/// cannot be read names none.
pub(super) fn mark_patches(inputs: &mut [Input]) {
    let folders: BTreeSet<PathBuf> = inputs
        .iter()
        .filter_map(Input::file)
        .filter_map(Path::parent)
        .flat_map(|it| [it.to_owned(), it.join("..")])
        .collect();
    let patches: BTreeSet<PathBuf> = folders
        .iter()
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .filter(|it| it.is_file())
        .flat_map(|it| patches_of(&it))
        .collect();
    if patches.is_empty() {
        return;
    }
    for input in inputs {
        let path = input.file().and_then(|it| it.canonicalize().ok());
        if path.is_some_and(|it| patches.contains(&it)) {
            input.set_patch();
        }
    }
}

/// The files that a kustomization names as patches.
fn patches_of(kustomization: &Path) -> Vec<PathBuf> {
    let text = read_file(kustomization).ok();
    let source = text.and_then(|it| ParsedSource::parse(it).ok());
    let documents = source.map_or_else(Vec::new, |it| it.documents);
    let folder = kustomization.parent().unwrap_or(Path::new("."));
    documents
        .iter()
        .flat_map(|it| PATCH_FIELDS.map(|field| it.value.get(field)))
        .filter_map(|it| it.and_then(Value::as_array))
        .flatten()
        .filter_map(|it| it.get("path").unwrap_or(it).as_str())
        .filter_map(|it| folder.join(it).canonicalize().ok())
        .collect()
}
