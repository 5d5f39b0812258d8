//! The stock installations of other projects: findings that the sources of the checks support, and no others.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use lockkeeper_doctor::{Snapshot, diagnose};
use lockkeeper_explain::WorldSettings;
use serde_json::Value;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

#[test]
fn stock_installations_have_no_other_findings() {
    let data = env::var_os("LOCKKEEPER_CONFORMANCE_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data")),
        PathBuf::from,
    );
    let folder = data.join("stock");
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
        documents.into_iter().for_each(|it| snapshot.add(it));
        let diagnosis = diagnose(&snapshot, &WorldSettings::default(), &[], 0);
        assert_eq!(snapshot.unreadable(), [String::new(); 0], "{project}");
        writeln!(text, "## {project}").unwrap();
        for it in &diagnosis.findings {
            writeln!(
                text,
                "{} {}: {}: {}",
                it.check.id, it.object, it.field, it.evidence
            )
            .unwrap();
        }
        for reason in &diagnosis.not_checked {
            writeln!(text, "not checked: {reason}").unwrap();
        }
        projects += 1;
    }
    println!("stock: {projects} installations");
    insta::assert_snapshot!(text);
}
