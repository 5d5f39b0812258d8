//! Collects the keys of labels, annotations and finalizers that the sources define.

use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The domains of the keys end with one of these.
const DOMAINS: [&str; 4] = [
    "lockkeeper.dev",
    "koordinator.sh",
    "kueue.x-k8s.io",
    "scheduling.k8s.io",
];

/// The file whose constants are all keys.
const LABELS: &str = "api/src/labels.rs";

/// The keys in the constants of all crates.
pub(crate) fn in_sources() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for entry in fs::read_dir(root()).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            collect(&folder, &mut keys);
        }
    }
    let labels = fs::read_to_string(root().join(LABELS)).unwrap();
    let labels: BTreeSet<String> = constants(&labels).map(str::to_owned).collect();
    assert!(labels.len() > 10, "{labels:?}");
    keys.extend(labels);
    keys
}

fn collect(folder: &Path, keys: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, keys);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            keys.extend(constants(code).filter(|it| is_key(it)).map(str::to_owned));
        }
    }
}

/// The values of the string constants of a source.
fn constants(source: &str) -> impl Iterator<Item = &str> {
    let values = source.split(": &str =").skip(1);
    values.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
}

/// Whether a text is a key, and not an API version or the mark of a template.
fn is_key(text: &str) -> bool {
    if text.contains(char::is_whitespace) {
        return false;
    }
    let Some((domain, name)) = text.split_once('/') else {
        return false;
    };
    let is_version = name.starts_with("v1") || name.starts_with("v2");
    DOMAINS.iter().any(|it| domain.ends_with(it)) && !is_version && !domain.contains(".chart.")
}
