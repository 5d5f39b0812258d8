//! The inputs of kustomize: kustomizations, its settings, and the patches that kustomizations name. A patch is a part of
//! an object.

use lockkeeper_check::ParsedSource;
use lockkeeper_crdgen::manifests::read_file;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The names of a kustomization.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The usual name of settings for the transformers of kustomize.
const SETTINGS: &str = "kustomizeconfig.yaml";

/// The fields of a kustomization that name patches.
const PATCH_FIELDS: [&str; 3] = ["patches", "patchesStrategicMerge", "patchesJson6902"];

/// Whether the name of a file is that of an input of kustomize, which may have no kind.
pub(super) fn is_input(path: &Path) -> bool {
    let name = path.file_name().and_then(|it| it.to_str());
    name.is_some_and(|it| it == SETTINGS || KUSTOMIZATIONS.contains(&it))
}

/// Sets the kind that kustomize assumes.
pub(super) fn set_kind(document: &mut Value) {
    if let Value::Object(fields) = document
        && !fields.contains_key("kind")
        && !fields.contains_key("apiVersion")
    {
        let api_version = "kustomize.config.k8s.io/v1beta1";
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), "Kustomization".into());
    }
}

/// The canonical paths of the patches that kustomizations in the folders of these files, and in the folders above, name.
/// A kustomization that cannot be read names none. Costs three lookups for each folder.
pub(super) fn patches<'a>(files: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let folders: BTreeSet<PathBuf> = files
        .filter_map(Path::parent)
        .flat_map(|it| [it.to_owned(), it.join("..")])
        .collect();
    folders
        .iter()
        .flat_map(|folder| KUSTOMIZATIONS.map(|name| folder.join(name)))
        .filter(|it| it.is_file())
        .flat_map(|it| patches_of(&it))
        .collect()
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
