//! The recorded answers of an API server about built-in kinds.
//!
//! `LOCKKEEPER_CONFORMANCE_DIR` names the folder with `crdcheck/`; without it `../shared/data`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use serde_json::Value;
use std::path::PathBuf;
use std::{env, fs};

/// The cases whose answers do not depend on the cluster, without those of definitions; none without data.
pub(super) fn cases() -> Vec<Value> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = match env::var_os("LOCKKEEPER_CONFORMANCE_DIR") {
        Some(folder) => here.join(folder),
        None => here.join("../shared/data"),
    };
    let text = fs::read_to_string(folder.join("crdcheck/cases/builtin.jsonl"));
    let text = text.unwrap_or_default();
    let cases = text.lines().map(|it| serde_json::from_str(it).unwrap());
    let is_scored =
        |it: &Value| it.get("environment").is_none() && it["kind"] != "CustomResourceDefinition";
    cases.filter(is_scored).collect()
}
