//! Compares the recorded verdicts with crdify itself. `tests/crdify/run` builds crdify and runs this target, which
//! `cargo test --workspace` leaves out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

#[allow(dead_code, reason = "the test target diff uses the rest")]
#[path = "../diff/cases.rs"]
mod cases;
#[allow(dead_code, reason = "the test target diff uses the rest")]
#[path = "../diff/crdify_record.rs"]
mod crdify_record;

use crdify_record::{Crdify, read_record};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[test]
fn crdify_verdicts_match_record() {
    let program =
        env::var_os("LOCKKEEPER_CRDIFY").expect("LOCKKEEPER_CRDIFY names the program crdify");
    let folder = TempDir::new().unwrap();
    let cases: BTreeMap<_, _> = cases::all()
        .into_iter()
        .map(|it| (it.name.clone(), it))
        .collect();
    let mut wrong = Vec::new();
    for verdict in read_record().verdicts {
        let case = &cases[&verdict.case];
        let write = |name: &str, definition| {
            let path = folder.path().join(name);
            fs::write(&path, serde_json::to_string(&definition).unwrap()).unwrap();
            format!("file://{}", path.display())
        };
        let (old, new) = (
            write("old.json", case.before()),
            write("new.json", case.after()),
        );
        let status = Command::new(&program)
            .args([old, new])
            .stdout(Stdio::null())
            .status();
        let result = if status.unwrap().success() {
            Crdify::Passes
        } else {
            Crdify::Fails
        };
        if result != verdict.crdify {
            wrong.push(format!("{}: {}", verdict.case, result.name()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
