//! The arrows between our crates, and what each may use. ARCHITECTURE.md draws them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use std::collections::BTreeSet;
use std::process::Command;

/// The allowed dependencies of each crate. A crate that is not listed here may not exist.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("lockkeeper-api", &[]),
    ("lockkeeper-conversion", &["lockkeeper-api"]),
    ("lockkeeper-preemption", &[]),
    (
        "lockkeeper-cluster-state",
        &["lockkeeper-api", "lockkeeper-preemption"],
    ),
    (
        "lockkeeper-scenario",
        &[
            "lockkeeper-api",
            "lockkeeper-cluster-state",
            "lockkeeper-preemption",
        ],
    ),
    (
        "lockkeeper-simulate",
        &[
            "lockkeeper-api",
            "lockkeeper-preemption",
            "lockkeeper-cluster-state",
            "lockkeeper-scenario",
        ],
    ),
    (
        "lockkeeper-report",
        &["lockkeeper-scenario", "lockkeeper-simulate"],
    ),
    ("lockkeeper-parquet-table", &[]),
    (
        "lockkeeper-trace-import",
        &[
            "lockkeeper-api",
            "lockkeeper-cluster-state",
            "lockkeeper-decision-log",
            "lockkeeper-explain",
            "lockkeeper-preemption",
            "lockkeeper-scenario",
            "lockkeeper-simulate",
        ],
    ),
    (
        "lockkeeper-explain",
        &[
            "lockkeeper-api",
            "lockkeeper-cluster-state",
            "lockkeeper-preemption",
        ],
    ),
    (
        "lockkeeper-observe",
        &[
            "lockkeeper-api",
            "lockkeeper-cluster-state",
            "lockkeeper-explain",
            "lockkeeper-preemption",
        ],
    ),
    (
        "lockkeeper-decision-log",
        &[
            "lockkeeper-api",
            "lockkeeper-cluster-state",
            "lockkeeper-explain",
            "lockkeeper-preemption",
        ],
    ),
    (
        "lockkeeper-doctor",
        &[
            "lockkeeper-api",
            "lockkeeper-cluster-state",
            "lockkeeper-explain",
            "lockkeeper-job-kinds",
        ],
    ),
    ("lockkeeper-crd-schema", &["lockkeeper-api"]),
    (
        "lockkeeper-job-kinds",
        &["lockkeeper-api", "lockkeeper-crd-schema"],
    ),
    (
        "lockkeeper-policies",
        &[
            "lockkeeper-api",
            "lockkeeper-crd-schema",
            "lockkeeper-job-kinds",
        ],
    ),
    ("lockkeeper-kube-support", &["lockkeeper-api"]),
    (
        "lockkeeper-certs",
        &["lockkeeper-api", "lockkeeper-kube-support"],
    ),
    (
        "lockkeeper-webhook",
        &[
            "lockkeeper-api",
            "lockkeeper-certs",
            "lockkeeper-kube-support",
            "lockkeeper-conversion",
            "lockkeeper-policies",
        ],
    ),
    (
        "lockkeeper-controller",
        &[
            "lockkeeper-api",
            "lockkeeper-policies",
            "lockkeeper-preemption",
            "lockkeeper-cluster-state",
            "lockkeeper-decision-log",
            "lockkeeper-job-kinds",
            "lockkeeper-kube-support",
        ],
    ),
    (
        "lockkeeper-crdgen",
        &[
            "lockkeeper-api",
            "lockkeeper-conversion",
            "lockkeeper-crd-schema",
            "lockkeeper-job-kinds",
            "lockkeeper-policies",
        ],
    ),
    (
        "lockkeeper-check",
        &[
            "lockkeeper-api",
            "lockkeeper-cluster-state",
            "lockkeeper-crd-schema",
            "lockkeeper-crdgen",
            "lockkeeper-job-kinds",
            "lockkeeper-policies",
            "lockkeeper-preemption",
            "lockkeeper-simulate",
        ],
    ),
    // For web pages; no crate depends on it.
    (
        "lockkeeper-playground",
        &["lockkeeper-api", "lockkeeper-check", "lockkeeper-policies"],
    ),
    // Measures the webhook; no crate depends on it.
    (
        "lockkeeper-bench",
        &["lockkeeper-policies", "lockkeeper-webhook"],
    ),
    // Only dev-dependencies use it.
    ("lockkeeper-testkit", &[]),
    (
        "lockkeeper",
        &[
            "lockkeeper-api",
            "lockkeeper-certs",
            "lockkeeper-check",
            "lockkeeper-controller",
            "lockkeeper-crdgen",
            "lockkeeper-decision-log",
            "lockkeeper-doctor",
            "lockkeeper-explain",
            "lockkeeper-observe",
            "lockkeeper-kube-support",
            "lockkeeper-policies",
            "lockkeeper-preemption",
            "lockkeeper-report",
            "lockkeeper-simulate",
            "lockkeeper-cluster-state",
            "lockkeeper-scenario",
            "lockkeeper-parquet-table",
            "lockkeeper-trace-import",
            "lockkeeper-webhook",
        ],
    ),
];

/// The crates that do no I/O, and what must not be below them.
const PURE_CRATES: &[&str] = &[
    "lockkeeper-api",
    "lockkeeper-conversion",
    "lockkeeper-crd-schema",
    "lockkeeper-check",
    "lockkeeper-playground",
    "lockkeeper-job-kinds",
    "lockkeeper-policies",
    "lockkeeper-preemption",
    "lockkeeper-simulate",
    "lockkeeper-report",
    "lockkeeper-cluster-state",
    "lockkeeper-scenario",
    "lockkeeper-explain",
    "lockkeeper-observe",
    "lockkeeper-decision-log",
    "lockkeeper-doctor",
    "lockkeeper-parquet-table",
    "lockkeeper-trace-import",
];
const IMPURE: &[&str] = &[
    "tokio",
    "hyper",
    "rustls",
    "kube-client",
    "kube-runtime",
    "rand",
    "tracing",
    "crossterm",
];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .no_deps()
        .exec()
        .expect("cargo metadata")
}

#[test]
fn crate_dependencies_match_allowed_list() {
    let metadata = metadata();
    let members: BTreeSet<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    let drawn: BTreeSet<&str> = ALLOWED_DEPENDENCIES.iter().map(|(name, _)| *name).collect();
    assert_eq!(members, drawn, "a crate is drawn if and only if it exists");
    for package in &metadata.packages {
        let (_, allowed) = ALLOWED_DEPENDENCIES
            .iter()
            .find(|(name, _)| *name == package.name.as_str())
            .unwrap();
        for dependency in &package.dependencies {
            let ours = members.contains(dependency.name.as_str());
            if ours && dependency.kind != DependencyKind::Development {
                let (from, to) = (&package.name, &dependency.name);
                assert!(allowed.contains(&to.as_str()), "{from} must not use {to}");
            }
        }
    }
}

/// Path segments that end the replayability of the reconciler: I/O, clocks, random order, the runtime above it.
const IMPURE_NAMES: &[&str] = &[
    "HashMap",
    "HashSet",
    "Instant",
    "SystemTime",
    "async",
    "await",
    "fs",
    "futures_util",
    "http",
    "kube",
    "prometheus_client",
    "rand",
    "runtime",
    "thread",
    "tokio",
    "tracing",
];

/// The names in Rust source: identifiers outside of comments and of string and character literals. A name
/// after a dot is a field or method, and is left out unless it is `await`.
fn code_names(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut in_string = false;
    for line in source.lines() {
        let mut rest = line.chars().peekable();
        let (mut name, mut before) = (String::new(), ' ');
        while let Some(c) = rest.next() {
            if in_string {
                match c {
                    '\\' => drop(rest.next()),
                    '"' => in_string = false,
                    _ => {}
                }
                continue;
            }
            if c.is_alphanumeric() || c == '_' {
                name.push(c);
                continue;
            }
            let is_member = before == '.' && name != "await";
            let ended = std::mem::take(&mut name);
            if !ended.is_empty() && !is_member {
                names.insert(ended);
            }
            before = c;
            match c {
                '"' => in_string = true,
                // The character literal of a quote.
                '\'' if rest.peek() == Some(&'"') => drop(rest.next()),
                '/' if rest.peek() == Some(&'/') => break,
                _ => {}
            }
        }
        if !name.is_empty() && (before != '.' || name == "await") {
            names.insert(name);
        }
    }
    names
}

#[test]
fn code_names_skips_comments_strings_and_members() {
    let source = "use std::time as clock; // Instant\nlet it = \"tokio\".runtime; f().await";
    let names = code_names(source);
    for name in ["std", "time", "clock", "await", "it"] {
        assert!(names.contains(name), "{name}");
    }
    for name in ["Instant", "tokio", "runtime"] {
        assert!(!names.contains(name), "{name}");
    }
}

/// The pure modules of the controller; the rest is its runtime.
#[test]
fn reconciler_uses_no_client_and_no_clock() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../controller/src");
    let mut seen = 0;
    let mut open = vec![
        format!("{source}/key.rs"),
        format!("{source}/reconciler.rs"),
        format!("{source}/reconciler"),
        format!("{source}/job_adapters.rs"),
        format!("{source}/job_adapters"),
    ];
    while let Some(path) = open.pop() {
        if std::fs::metadata(&path).unwrap().is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            open.extend(entries.map(|it| it.unwrap().path().display().to_string()));
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let names = code_names(&text);
        for name in IMPURE_NAMES {
            assert!(!names.contains(*name), "{path} uses {name:?}");
        }
        // An alias such as `use std::time as t` would hide a clock; durations come from the core.
        assert!(!text.contains("std::time"), "{path} uses std::time");
        assert!(!text.contains("Timestamp::now"), "{path} reads the clock");
    }
    assert!(seen > 10, "the reconciler has moved");
}

#[test]
fn pure_crates_depend_on_no_io() {
    for name in PURE_CRATES {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--locked",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "--package",
                name,
            ])
            .args([
                "--format",
                "{p}",
                "--manifest-path",
                concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            ])
            .output()
            .expect("cargo tree");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let tree = String::from_utf8(output.stdout).unwrap();
        assert!(tree.starts_with(name), "{tree}");
        for line in tree.lines() {
            let below = line.split(' ').next().unwrap();
            assert!(!IMPURE.contains(&below), "{name} depends on {below}");
        }
    }
}

#[test]
fn core_crate_has_no_dependencies() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal"])
        .args(["--package", "lockkeeper-preemption", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo tree");
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(tree.starts_with("lockkeeper-preemption"), "{tree}");
    assert_eq!(tree.lines().count(), 1, "{tree}");
}

#[test]
fn every_crate_uses_workspace_lints() {
    for package in metadata().packages {
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true\n"),
            "{}",
            package.name
        );
    }
}
