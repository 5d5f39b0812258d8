//! The output of `lockkeeper crds job-kinds` on a cluster, without a controller and a webhook.

use super::super::fixture::ControllerFixture;
use super::training_run::{apply, declaration, definition, install, run};
use crate::fixture::{DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::wait;
use serde_json::{Value, json};
use std::process::Command;

/// Other trials install a kind of the same name in another group.
const RESOURCE: &str = "trainingruns.training.example.com";

/// A new job is suspended, and a running one keeps its queue. The emitted role gives the controller its rights.
pub(super) fn emitted_policies_guard_jobs(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    install(&mut site, &definition());
    let emitted = emitted(&mut site, &[]);
    apply(&mut site, &emitted);
    let kubectl = site.stage.cluster().kubectl();
    // The policies are in effect a moment after they are created.
    let probe = run("train", false).to_string();
    let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let is_suspended = wait::until(
        || {
            let output = kubectl.with_input(&dry_run, &probe);
            // The mutating policy knows the new kind a moment later.
            if output.stderr.contains("There can be a delay") {
                return Ok(None);
            }
            let output = output.expect_accepted();
            let object: Value = serde_json::from_str(&output.stdout).unwrap();
            Ok((object["spec"]["suspend"] == true).then_some(()))
        },
        || "the job is not suspended".to_owned(),
    );
    is_suspended.unwrap_or_else(|e| panic!("{e}"));
    children_of_controllers_run(kubectl, &dry_run);
    site.objects.create(&run("train", false));
    only_controllers_resume(kubectl);
    for (key, value) in [
        ("lockkeeper.dev/queue-name", Value::Null),
        ("lockkeeper.dev/priority-class", json!("high")),
    ] {
        let change = json!({"metadata": {"labels": {key: value}}}).to_string();
        let arguments = ["patch", RESOURCE, "train", "--type=merge", "-p", &change];
        // So is the validating policy, at a time of its own. A dry run changes nothing until then.
        let dry_run = [&arguments[..], &["--dry-run=server"]].concat();
        let is_guarded = wait::until(
            || Ok((kubectl.run(&dry_run).code == Some(1)).then_some(())),
            || format!("a change of {key} is not rejected"),
        );
        is_guarded.unwrap_or_else(|e| panic!("{e}"));
        let output = kubectl.run(&arguments).expect_rejected();
        let expected = format!(
            "metadata.labels['{key}']: field is immutable while the job is not suspended; set spec.suspend to true first"
        );
        assert!(output.stderr.contains(&expected), "{}", output.stderr);
    }
    site.objects.delete("TrainingRun", "train");
    kubectl
        .with_input(&["delete", "-f", "-"], &emitted)
        .expect_accepted();
    site.stop();
}

/// A job that waits for quota is resumed by lockkeeper and by the controller of its kind.
fn only_controllers_resume(kubectl: &Kubectl) {
    let started = json!({"spec": {"suspend": false}}).to_string();
    let resume = |account: &str, flags: &[&str]| {
        let patch = ["patch", RESOURCE, "train", "--type=merge", "-p", &started];
        let user = ["--as", account, "--as-group=system:masters"];
        kubectl.run(&[&patch[..], &user, flags].concat())
    };
    // A dry run changes nothing until the policy is in effect.
    let is_guarded = wait::until(
        || Ok((resume("tenant", &["--dry-run=server"]).code == Some(1)).then_some(())),
        || "a resumption is not rejected".to_owned(),
    );
    is_guarded.unwrap_or_else(|e| panic!("{e}"));
    let output = resume("tenant", &[]).expect_rejected();
    let expected = "spec.suspend: only the controller may resume a job with a queue";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    resume(OPERATOR, &[]).expect_accepted();
}

/// `KubeRay` copies the labels of a `RayJob` to its `RayCluster`, which has to run.
pub(super) fn children_of_controllers_run(kubectl: &Kubectl, dry_run: &[&str]) {
    let child = child_of_a_controller();
    for (account, is_suspended) in [(OPERATOR, false), ("tenant", true)] {
        let arguments = [&["--as", account, "--as-group=system:masters"][..], dry_run].concat();
        let output = kubectl.with_input(&arguments, &child.to_string());
        let object: Value = serde_json::from_str(&output.expect_accepted().stdout).unwrap();
        assert_eq!(object["spec"]["suspend"] == true, is_suspended, "{account}");
    }
}

/// The output of the command for the declaration.
pub(super) fn emitted(site: &mut ControllerFixture<'_>, flags: &[&str]) -> String {
    let declaration = declaration("item.replicas")["items"][0].to_string();
    let file = site.stage.cluster().folder().join("jobkind.json");
    std::fs::write(&file, &declaration).unwrap();
    emitted_for(file.to_str().unwrap(), flags)
}

/// The output of the command for a file.
pub(super) fn emitted_for(file: &str, flags: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_lockkeeper"))
        .args(["crds", "job-kinds"])
        .args(flags)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The policies for API servers without mutating policies: a new job with a queue is rejected unless it is suspended.
pub(super) fn emitted_policies_require_suspension(stage: &mut Fixture) {
    let mut site = ControllerFixture::open(stage, DEFAULTS);
    install(&mut site, &definition());
    let emitted = emitted(&mut site, &["--kubernetes-version=1.35"]);
    apply(&mut site, &emitted);
    let kubectl = site.stage.cluster().kubectl();
    let create = |account: &str, job: &Value| {
        let dry_run = ["create", "--dry-run=server", "-f", "-", "--as", account];
        let arguments = [&dry_run[..], &["--as-group=system:masters"]].concat();
        kubectl.with_input(&arguments, &job.to_string())
    };
    // The policy is in effect a moment after it is created.
    let is_rejected = wait::until(
        || Ok((create("tenant", &run("train", false)).code == Some(1)).then_some(())),
        || "a job that is not suspended is accepted".to_owned(),
    );
    is_rejected.unwrap_or_else(|e| panic!("{e}"));
    let stderr = create("tenant", &run("train", false)).stderr;
    let expected =
        "spec.suspend: must be true in a new job with the label lockkeeper.dev/queue-name";
    assert!(stderr.contains(expected), "{stderr}");
    create("tenant", &run("train", true)).expect_accepted();
    let mut free = run("train", false);
    free["metadata"]["labels"] = json!({});
    create("tenant", &free).expect_accepted();
    create(OPERATOR, &child_of_a_controller()).expect_accepted();
    kubectl
        .with_input(&["delete", "-f", "-"], &emitted)
        .expect_accepted();
    site.stop();
}

/// The account of a kind's controller.
pub(super) const OPERATOR: &str = "system:serviceaccount:ray-system:operator";

/// A job that is not suspended, with a controller.
fn child_of_a_controller() -> Value {
    let mut child = run("child", false);
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": "u", "controller": true,
    }]);
    child
}
