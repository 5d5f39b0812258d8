//! Previews at admission: `webhook.preview` warns what the controller will do, and the controller does it.

use serde_json::{Value, json};

use super::Trial;
use super::fixture::{self, ControllerFixture, NO_LEADER_ELECTION};
use crate::fixture::Fixture;
use crate::kubectl::Kubectl;
use crate::lockkeeper::Protocol;
use crate::wait;

pub const TRIALS: [Trial; 4] = [
    ("the controller does what a preview says", agreement),
    ("a preview counts the workloads of others", other_namespace),
    ("no preview without the setting", disabled),
    ("no preview of an object above the size limit", large_object),
];

const PREVIEW: &str = "webhook: {preview: true}\n";

const SUBMIT: [&str; 3] = ["create", "-f", "-"];

const DRY_RUN: [&str; 4] = ["create", "--dry-run=server", "-f", "-"];

/// A queue of 8 cpu, whose workloads preempt those of lower priority.
#[track_caller]
fn open<'a>(stage: &'a mut Fixture, config: &str) -> (ControllerFixture<'a>, Kubectl) {
    stage.register_server(Protocol::Http1, config);
    let mut site = ControllerFixture::without_controller(stage);
    site.start_controller("", &[NO_LEADER_ELECTION]);
    site.flavor("default");
    site.classes();
    let more = json!({"preemption": {"withinClusterQueue": "LowerPriority"}});
    site.queue("q", 8, &more);
    let kubectl = site.stage.cluster().kubectl().clone();
    (site, kubectl)
}

/// What kubectl prints as warnings of previews.
#[track_caller]
fn previews(kubectl: &Kubectl, arguments: &[&str], object: &Value) -> Vec<String> {
    let reply = kubectl
        .with_input(arguments, &object.to_string())
        .expect_accepted();
    let lines = reply.stderr.lines();
    let previews = lines.filter_map(|it| it.strip_prefix("Warning: preview: "));
    previews.map(str::to_owned).collect()
}

fn job(name: &str, cpu: u32, class: &str) -> Value {
    fixture::job(name, "q", cpu, class, &json!({}))
}

/// Waits until the preview of an object is this one, as the stores of the webhook follow the cluster.
#[track_caller]
fn wait_for_preview(kubectl: &Kubectl, object: &Value, expected: &str) {
    let mut last = Vec::new();
    let found = wait::until(
        || {
            last = previews(kubectl, &DRY_RUN, object);
            Ok((last == [expected]).then_some(()))
        },
        String::new,
    );
    found.unwrap_or_else(|_| panic!("expected {expected}, found {last:?}"));
}

/// Creates a Job, whose creation shows this preview. On a busy machine a review may end without its preview; then the Job is
/// created again.
#[track_caller]
fn submit(site: &ControllerFixture<'_>, kubectl: &Kubectl, object: &Value, expected: &str) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let found = wait::until(
        || {
            wait_for_preview(kubectl, object, expected);
            let created = previews(kubectl, &SUBMIT, object);
            if created == [expected] {
                return Ok(Some(()));
            }
            assert!(created.is_empty(), "{created:?}");
            site.objects.delete("Job", name);
            site.objects.wait_until_gone("Job", name);
            Ok(None)
        },
        || format!("the creation of {name} shows no preview"),
    );
    found.unwrap_or_else(|e| panic!("{e}"));
}

fn agreement(stage: &mut Fixture) {
    let (site, kubectl) = open(stage, PREVIEW);
    let first = job("first", 6, "low");
    submit(&site, &kubectl, &first, "runs now on flavor default");
    site.wait_until_running("first");

    let second = job("second", 4, "low");
    let waits = "waits in ClusterQueue q: flavor default: not free, and there are no candidate workloads for preemption";
    submit(&site, &kubectl, &second, waits);
    site.wait_until_pending("second", "WaitingForQuota");

    let third = job("third", 2, "low");
    wait_for_preview(&kubectl, &third, "runs now on flavor default");

    let urgent = job("urgent", 8, "high");
    let preempts = "would preempt 1 workload (1 of this namespace)";
    submit(&site, &kubectl, &urgent, preempts);
    site.wait_until_running("urgent");
    site.wait_until_stopped("first");

    let mut gpu = job("gpu", 1, "low");
    gpu["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({
        "requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"},
    });
    let never = previews(&kubectl, &SUBMIT, &gpu);
    let [never] = never.as_slice() else {
        panic!("{never:?}");
    };
    assert!(
        never.starts_with("never runs until an object changes: ")
            && never.contains("nvidia.com/gpu"),
        "{never}"
    );
    site.wait_until_pending("gpu", "ResourceNotCovered");
}

/// A tenant learns how many workloads of others are preempted, and no names.
fn other_namespace(stage: &mut Fixture) {
    let (site, kubectl) = open(stage, PREVIEW);
    let mut queue = fixture::local_queue("q", "q");
    queue["metadata"]["namespace"] = "other".into();
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}),
        queue,
    ] {
        kubectl.apply(&object.to_string(), &[]).expect_accepted();
    }
    let secret = job("secret-project", 8, "low");
    wait_for_preview(&kubectl, &secret, "runs now on flavor default");
    previews(&kubectl, &SUBMIT, &secret);
    site.wait_until_running("secret-project");
    let mut urgent = job("urgent", 8, "high");
    urgent["metadata"]["namespace"] = "other".into();
    wait_for_preview(
        &kubectl,
        &urgent,
        "would preempt 1 workload (1 of other namespaces)",
    );
    let mut waits = job("waits", 1, "low");
    waits["metadata"]["namespace"] = "other".into();
    wait_for_preview(
        &kubectl,
        &waits,
        "waits in ClusterQueue q: flavor default: not free, and there are no candidate workloads for preemption",
    );
    // Dry runs have stored nothing.
    assert!(kubectl.absent(&["jobs", "urgent", "--namespace=other"]));
}

fn disabled(stage: &mut Fixture) {
    let (site, kubectl) = open(stage, "");
    let none: [&str; 0] = [];
    assert_eq!(previews(&kubectl, &SUBMIT, &job("first", 1, "low")), none);
    site.wait_until_running("first");
    assert_eq!(previews(&kubectl, &SUBMIT, &job("second", 1, "low")), none);
}

fn large_object(stage: &mut Fixture) {
    let config = format!("{PREVIEW}controller: {{jobSpecMaxBytes: 16384}}\n");
    let (site, kubectl) = open(stage, &config);
    let mut large = job("large", 1, "low");
    wait_for_preview(&kubectl, &large, "runs now on flavor default");
    large["metadata"]["annotations"]["example.com/text"] = "x".repeat(20_000).into();
    let none: [&str; 0] = [];
    assert_eq!(previews(&kubectl, &SUBMIT, &large), none);
    // The webhook has only warned less.
    site.wait_until_running("large");
}
