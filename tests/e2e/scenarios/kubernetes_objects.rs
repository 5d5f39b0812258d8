//! Kubernetes' own kinds, which the webhook validates.

use super::Scenario;
use crate::fixture::{DEFAULTS, Fixture};
use crate::lockkeeper::Protocol;
use crate::manifests::{self, CLUSTER_OBJECTS};
use crate::snapshot;
use crate::wait;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("deleting a class in use warns", class_in_use),
        Scenario::new(
            "the labels of the pods of a job must be consistent",
            pods_of_one_job,
        ),
        Scenario::new(
            "a Job with a queue name is created suspended",
            job_of_a_queue,
        ),
    ]
}

fn class_in_use(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, DEFAULTS);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    let workload = manifests::workload_of_class("team", "train", "high");
    kubectl
        .apply(&workload, &[])
        .expect_accepted_without_warning();

    // The webhook observes the workload a moment after its creation.
    let dry_run = ["delete", "priorityclass", "high", "--dry-run=server"];
    wait::until(
        || Ok((!kubectl.run(&dry_run).expect_accepted().stderr.is_empty()).then_some(())),
        || "no warning about a class in use".to_owned(),
    )
    .unwrap();
    let reply = kubectl
        .run(&["delete", "priorityclass", "high"])
        .expect_accepted();
    assert!(reply.stderr.starts_with("Warning: "), "{}", reply.stderr);
    snapshot::check("class-in-use", &reply.stderr);
    assert!(kubectl.absent(&["priorityclass", "high"]));

    // No workload uses the other class.
    kubectl
        .run(&["delete", "priorityclass", "low"])
        .expect_accepted_without_warning();
}

fn pods_of_one_job(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, DEFAULTS);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    kubectl
        .apply(&manifests::pod("first", true), &[])
        .expect_accepted_without_warning();

    // The webhook observes the first pod a moment after its creation.
    let second = manifests::pod("second", false);
    wait::until(
        || {
            let reply = kubectl.apply(&second, &["--dry-run=server"]);
            Ok((reply.code != Some(0)).then_some(()))
        },
        || "the second pod is never rejected".to_owned(),
    )
    .unwrap();
    let reply = kubectl.apply(&second, &[]).expect_rejected();
    snapshot::check("pods-that-disagree", &reply.stderr);
    assert!(kubectl.absent(&["pod", "second", "-n", "team"]));
    kubectl
        .apply(&manifests::pod("second", true), &[])
        .expect_accepted_without_warning();
}

fn job_of_a_queue(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = stage.with_server(protocol, DEFAULTS);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    // The API server itself sets `false` by default.
    for (name, queue, suspend, expected) in [
        ("queued", Some("main"), None, true),
        ("hasty", Some("main"), Some(false), true),
        ("patient", Some("main"), Some(true), true),
        ("free", None, None, false),
        ("still", None, Some(true), true),
    ] {
        let job = manifests::job(name, queue, suspend);
        let create = ["create", "-f", "-"];
        kubectl
            .with_input(&create, &job)
            .expect_accepted_without_warning();
        let stored = kubectl.get(&["job", name, "-n", "team"]);
        assert_eq!(stored["spec"]["suspend"], expected, "{name}: {stored:#}");
    }

    // A later update may start the Job.
    let start = r#"{"spec":{"suspend":false}}"#;
    let flags = [
        "patch",
        "job",
        "queued",
        "-n",
        "team",
        "--type=merge",
        "-p",
        start,
    ];
    kubectl.run(&flags).expect_accepted_without_warning();
    let stored = kubectl.get(&["job", "queued", "-n", "team"]);
    assert_eq!(stored["spec"]["suspend"], false, "{stored:#}");
}
