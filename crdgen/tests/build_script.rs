//! The `build.rs` of `docs/crdgen-library.md` is compiled, and run in a package's folder.
//!
//! It is a part of this test. As the build script of a package of its own it would have all it depends on compiled once
//! more, since Cargo builds these otherwise: minutes instead of seconds.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
#![expect(
    clippy::print_stdout,
    reason = "Cargo reads what a build script prints"
)]

include!("build_script/build.rs");

use serde_json::Value;
use std::path::Path;
use std::{env, fs};
use tempfile::TempDir;

/// The only test here: the folder that a build script runs in is that of the whole process.
#[test]
fn documented_build_script_writes_definition() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/build_script");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/crdgen-library.md");
    let page = fs::read_to_string(page).unwrap();
    let build = fs::read_to_string(tests.join("build.rs")).unwrap();
    assert!(page.contains(&format!("```rust\n{build}```\n")));
    let kind = fs::read_to_string(tests.join("src/reservation.rs")).unwrap();
    let (_, kind) = kind.split_once("\n\n").unwrap();
    assert!(page.contains(kind));

    let package = TempDir::new().unwrap();
    env::set_current_dir(package.path()).unwrap();
    main().unwrap();
    let file = package
        .path()
        .join("deploy/crds/example.com_reservations.yaml");
    let written: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let spec = written.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
    let nodes = spec.and_then(|it| it.pointer("/properties/nodes/maximum"));
    assert_eq!(nodes.and_then(Value::as_u64), Some(5000));
}
