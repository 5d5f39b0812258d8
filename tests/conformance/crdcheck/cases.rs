//! Reads cases and definitions.

use lockkeeper_crd_schema::crd::Schema;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{env, fs};

/// The folder with the data.
pub fn folder() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let shared = here.join("../shared/data");
    let root = match env::var_os("LOCKKEEPER_CONFORMANCE_DIR") {
        Some(folder) => here.join(folder),
        None if shared.is_dir() => shared,
        None => here.join("tests/conformance/data"),
    };
    root.join("crdcheck")
}

/// The projects with cases, sorted.
pub fn projects(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("cases")).unwrap();
    let paths = files.map(|it| it.unwrap().path());
    let paths = paths.filter(|it| it.extension().is_some_and(|it| it == "jsonl"));
    let mut names: Vec<String> = paths
        .map(|it| it.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(!names.is_empty(), "{} has no cases", folder.display());
    names.sort();
    names
}

/// The cases of a project whose answer does not depend on the recorder's cluster or URL.
pub fn read(folder: &Path, project: &str) -> Vec<Value> {
    let path = folder.join("cases").join(format!("{project}.jsonl"));
    let text = fs::read_to_string(path).unwrap();
    let cases = text
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    cases.filter(|it| it.get("environment").is_none()).collect()
}

/// The definitions of a project; schemas are compiled once.
pub struct Definitions {
    folder: PathBuf,
    definitions: BTreeMap<String, Value>,
    schemas: BTreeMap<(String, String), Rc<Schema>>,
}

impl Definitions {
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            definitions: BTreeMap::new(),
            schemas: BTreeMap::new(),
        }
    }

    fn definition(&mut self, name: &str) -> &Value {
        let path = self.folder.join(format!("{name}.yaml"));
        self.definitions.entry(name.to_owned()).or_insert_with(|| {
            let text =
                fs::read_to_string(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
            // The recorder read `y` as a text.
            let options = serde_saphyr::options! { strict_booleans: true };
            serde_json::from_str(&text)
                .unwrap_or_else(|_| serde_saphyr::from_str_with_options(&text, options).unwrap())
        })
    }

    /// The schema that a case names, with the patch of the case.
    pub fn schema(&mut self, case: &Value) -> Rc<Schema> {
        let name = case["crd"].as_str().unwrap().to_owned();
        let version = case["version"].as_str().unwrap().to_owned();
        if let Some(patch) = case.get("crdPatch") {
            let mut definition = self.definition(&name).clone();
            let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
            json_patch::patch(&mut definition, &patch).unwrap();
            return Rc::new(Schema::from_crd(&definition, &version).unwrap());
        }
        let key = (name.clone(), version.clone());
        if let Some(schema) = self.schemas.get(&key) {
            return Rc::clone(schema);
        }
        let definition = self.definition(&name);
        let schema = Rc::new(Schema::from_crd(definition, &version).unwrap());
        self.schemas.insert(key, Rc::clone(&schema));
        schema
    }
}
