//! The examples for users: the good ones are accepted, and the bad ones are
//! rejected with the message in a snapshot.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Scenario;
use crate::ROOT;
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::kubectl::KubectlOutput;
use crate::lockkeeper::Protocol;
use crate::snapshot;

const GOOD: &str = "examples/good";
const BAD: &str = "examples/bad";

/// How often an example is applied until it is rejected; see [`apply_until_rejected`].
const ATTEMPTS_MAX: usize = 5;

pub fn scenarios(root: &Path) -> Vec<Scenario> {
    let mut scenarios = vec![Scenario::new("the good examples are accepted", good)];
    scenarios.extend(files(root, BAD).into_iter().map(|file| {
        Scenario::new(format!("{file} is rejected"), move |stage, protocol| {
            bad(stage, protocol, &file);
        })
    }));
    let together = Scenario::new("the bad examples are rejected together", bad_together);
    // Before, the webhook rejects some that the API server rejects now.
    scenarios.push(together.since(34));
    scenarios.push(Scenario::new("every snapshot has its example", |_, _| {
        orphans();
    }));
    scenarios
}

fn good(stage: &mut Fixture, protocol: Protocol) {
    let files = files(Path::new(ROOT), GOOD);
    assert!(!files.is_empty(), "no file in {GOOD}");
    let kubectl = stage.with_server(protocol, DEFAULTS);
    for file in &files {
        kubectl
            .run(&["apply", "-f", file])
            .expect_accepted_without_warning();
    }
    for file in &files {
        snapshot::check(&name("good", file), &stored(&kubectl, file));
    }
}

/// The message of the API server's admission plugin for a second default class.
const SECOND_DEFAULT: &str = "is already marked as default";

/// The stored form of a file: the user's fields and the defaults.
fn stored(kubectl: &Kubectl, file: &str) -> String {
    let reply = kubectl.get(&["-f", file]);
    let objects = match &reply["items"] {
        Value::Array(items) => items.clone(),
        _ => vec![reply],
    };
    let mut text = String::new();
    for object in objects {
        let metadata = &object["metadata"];
        let kept = json!({
            "kind": object["kind"],
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "finalizers": metadata["finalizers"],
            "spec": object["spec"],
        });
        writeln!(text, "{kept:#}").unwrap();
    }
    text
}

fn bad(stage: &mut Fixture, protocol: Protocol, file: &str) {
    let reply = apply_until_rejected(stage, protocol, file, 1);
    snapshot::check(&name("bad", file), &reply.stderr);
}

fn bad_together(stage: &mut Fixture, protocol: Protocol) {
    let count = files(Path::new(ROOT), BAD).len();
    assert!(count > 0, "no file in {BAD}");
    let reply = apply_until_rejected(stage, protocol, BAD, count);
    snapshot::check("bad-together", &reply.stderr);
}

/// Applies bad examples until that many objects are rejected at once. Two results depend on timing:
/// - If two pods of one job arrive together, the second may pass before the watch of the webhook has delivered the
///   first, as the pages of PO001 and PO005 say. So may a Workload that arrives together with its ClusterQueue (QU001).
/// - A second default class is rejected by the API server's admission plugin, or, before that plugin has observed the
///   first class, by the webhook. The snapshots have the message of the plugin.
///
/// All others are rejected the first time, with the same message.
#[track_caller]
fn apply_until_rejected(
    stage: &mut Fixture,
    protocol: Protocol,
    path: &str,
    count: usize,
) -> KubectlOutput {
    let needs_other_objects = ["/po0", "/qu0"].iter().any(|it| path.contains(it));
    let has_default_classes = path == BAD || path.contains("pc001");
    let attempts = if path == BAD || needs_other_objects || has_default_classes {
        ATTEMPTS_MAX
    } else {
        1
    };
    for _ in 1..attempts {
        let kubectl = stage.with_server(protocol, DEFAULTS);
        let reply = kubectl.run(&["apply", "-f", path]);
        let errors = ["Error from server", "The "];
        let rejections = reply
            .stderr
            .lines()
            .filter(|line| errors.iter().any(|e| line.starts_with(e)));
        let is_plugin = !has_default_classes || reply.stderr.contains(SECOND_DEFAULT);
        if rejections.count() == count && is_plugin {
            return reply.expect_rejected();
        }
    }
    let kubectl = stage.with_server(protocol, DEFAULTS);
    kubectl.run(&["apply", "-f", path]).expect_rejected()
}

/// Fails for a snapshot without an example.
fn orphans() {
    let root = Path::new(ROOT);
    let expected: BTreeSet<String> = files(root, GOOD)
        .iter()
        .map(|file| name("good", file))
        .chain(files(root, BAD).iter().map(|file| name("bad", file)))
        .collect();
    let Ok(entries) = fs::read_dir(root.join("tests/e2e/snapshots")) else {
        return;
    };
    for entry in entries {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = file.strip_suffix(".snap") else {
            continue;
        };
        let of_example = name.starts_with("good--") || name.starts_with("bad--");
        assert!(
            !of_example || expected.contains(name),
            "no example has the snapshot {file}"
        );
    }
}

/// The manifests in a folder, in the order in which kubectl would apply them;
/// the paths begin at the root of the repository.
fn files(root: &Path, folder: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        return Vec::new();
    };
    let names: BTreeSet<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_some_and(|kind| kind == "yaml" || kind == "yml")
        })
        .collect();
    names
        .into_iter()
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

/// The name of a file's snapshot.
fn name(prefix: &str, file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap().to_str().unwrap();
    format!("{prefix}--{stem}")
}
