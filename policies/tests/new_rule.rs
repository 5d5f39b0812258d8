//! `policies/new-rule` creates and registers a rule of each kind. It runs on a copy of the crate.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking"
)]

use lockkeeper_policies::reference::entries;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The kinds whose lists of rules the script extends.
const KINDS: [&str; 8] = [
    "cluster_queue",
    "cohort",
    "elastic_quota",
    "local_queue",
    "pod",
    "priority_class",
    "resource_flavor",
    "workload",
];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// A copy of the files that the script reads and writes.
fn checkout() -> tempfile::TempDir {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    copy(&here.join("src"), &folder.path().join("policies/src"));
    for file in ["policies/new-rule", "Cargo.toml"] {
        fs::copy(here.join("..").join(file), folder.path().join(file)).unwrap();
    }
    folder
}

fn new_rule(checkout: &Path, arguments: &[&str]) -> Output {
    let script = checkout.join("policies/new-rule");
    // Executing a file fails while another test starts a process that has inherited the file for writing.
    let mut command = Command::new("bash");
    command.arg(script).args(arguments).output().unwrap()
}

#[test]
fn new_rule_is_registered_with_next_id() {
    let checkout = checkout();
    let present: BTreeSet<String> = entries().iter().map(|it| it.rule.id.to_string()).collect();
    for kind in KINDS {
        let output = new_rule(checkout.path(), &[kind, "quota-on-sunday"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{kind}: {stderr}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let (id, _) = stdout.split_once(':').unwrap();
        assert!(!present.contains(id), "{kind}: {id} exists");
        let (letters, number) = id.split_at(2);
        let before = format!("{letters}{:03}", number.parse::<u32>().unwrap() - 1);
        assert!(present.contains(&before), "{kind}: {id} is not the next id");

        let folder = checkout.path().join("policies/src");
        let page = fs::read_to_string(folder.join(kind).join("quota_on_sunday.md")).unwrap();
        assert!(
            page.starts_with(&format!("# {id} quota-on-sunday\n")),
            "{page}"
        );
        let rule = fs::read_to_string(folder.join(kind).join("quota_on_sunday.rs")).unwrap();
        assert!(rule.contains(&format!("id: \"{id}\"")), "{rule}");
        let parent = fs::read_to_string(folder.join(kind).with_extension("rs")).unwrap();
        assert!(parent.contains("mod quota_on_sunday;\n"), "{parent}");
        let (_, rules) = parent.split_once("static RULES").unwrap();
        let (rules, _) = rules.split_once(';').unwrap();
        let depth = |name: &str| {
            let (before, _) = rules.split_once(name)?;
            let opened = before.matches(['[', '(']).count();
            Some(opened - before.matches([']', ')']).count())
        };
        let of_new = depth("quota_on_sunday::RULE");
        assert!(of_new.is_some(), "{kind}: {rules}");
        // In the list of the other rules, not after it.
        let (last, _) = rules.split_once("quota_on_sunday::RULE").unwrap();
        let last = last.rsplit([',', '[', '(']).find(|it| it.contains("RULE"));
        let last = last.map(str::trim);
        assert!(last.is_none_or(|it| depth(it) == of_new), "{kind}: {rules}");
    }
}

#[test]
fn new_rule_with_invalid_arguments_changes_nothing() {
    let checkout = checkout();
    for (arguments, error) in [
        (
            &["pod"][..],
            "usage: new-rule KIND NAME (kinds: cluster_queue ",
        ),
        (
            &["gadget", "a-rule"],
            "no kind gadget; the kinds are: cluster_queue ",
        ),
        (&["pod", "A_Rule"], "a name is in kebab-case"),
        (
            &["pod", "priority-differs"],
            "pod/priority_differs.rs exists",
        ),
    ] {
        let output = new_rule(checkout.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(error), "{arguments:?}: {stderr}");
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pod.rs");
    let copied = checkout.path().join("policies/src/pod.rs");
    assert_eq!(fs::read(copied).unwrap(), fs::read(source).unwrap());
}
