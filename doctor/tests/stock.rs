//! The stock installations of other projects: findings that the sources of the checks support, and no others.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking, and print their counts"
)]

use lockkeeper_doctor::{Snapshot, diagnose};
use lockkeeper_explain::WorldSettings;
use serde_json::Value;
use std::env;
use std::fs;
use std::path::Path;

mod support;

use support::write_text;

#[test]
fn stock_installations_have_no_other_findings() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let given = env::var_os("LOCKKEEPER_CONFORMANCE_DIR").map(|it| here.join(it));
    let folder = given
        .unwrap_or_else(|| here.join("../shared/data"))
        .join("stock");
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return;
    }
    let mut text = String::new();
    let mut projects = 0;
    for project in ["cert-manager", "gatekeeper", "kueue", "kyverno", "volcano"] {
        let manifests = fs::read_to_string(folder.join(project).with_extension("yaml")).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&manifests).unwrap();
        let mut snapshot = Snapshot::new();
        for document in documents {
            snapshot.add(document);
        }
        let diagnosis = diagnose(&snapshot, &WorldSettings::default(), &[], 0);
        assert!(snapshot.unreadable().is_empty(), "{project}");
        write_text(&mut text, project, &diagnosis);
        projects += 1;
    }
    println!("stock: {projects} installations");
    insta::assert_snapshot!(text);
}
