//! Kubernetes' own objects, which lockkeeper guards and does not own.

use super::Scenario;
use crate::lockkeeper::Protocol;
use crate::manifests::{self, WORLD};
use crate::snapshot;
use crate::stage::{DEFAULTS, Stage};
use crate::wait;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("deleting a class in use warns", class_in_use),
        Scenario::new("the pods of one job must agree", pods_of_one_job),
    ]
}

fn class_in_use(stage: &mut Stage, protocol: Protocol) {
    let kubectl = stage.fresh(protocol, DEFAULTS);
    kubectl.apply(WORLD, &[]).accepted_silently();
    let workload = manifests::workload_of_class("team", "train", "high");
    kubectl.apply(&workload, &[]).accepted_silently();

    // The webhook hears of the workload a moment after it was made.
    let dry_run = ["delete", "priorityclass", "high", "--dry-run=server"];
    wait::until(
        || Ok((!kubectl.run(&dry_run).accepted().stderr.is_empty()).then_some(())),
        || "no warning about a class in use".to_owned(),
    )
    .unwrap();
    let reply = kubectl.run(&["delete", "priorityclass", "high"]).accepted();
    assert!(reply.stderr.starts_with("Warning: "), "{}", reply.stderr);
    snapshot::check("class-in-use", &reply.stderr);
    assert!(kubectl.absent(&["priorityclass", "high"]));

    // Nobody uses the other one.
    kubectl
        .run(&["delete", "priorityclass", "low"])
        .accepted_silently();
}

fn pods_of_one_job(stage: &mut Stage, protocol: Protocol) {
    let kubectl = stage.fresh(protocol, DEFAULTS);
    kubectl.apply(WORLD, &[]).accepted_silently();
    kubectl
        .apply(&manifests::pod("first", true), &[])
        .accepted_silently();

    // The webhook hears of the first pod a moment after it was made.
    let second = manifests::pod("second", false);
    wait::until(
        || {
            let reply = kubectl.apply(&second, &["--dry-run=server"]);
            Ok((reply.code != Some(0)).then_some(()))
        },
        || "the second pod is never refused".to_owned(),
    )
    .unwrap();
    let reply = kubectl.apply(&second, &[]).refused();
    snapshot::check("pods-that-disagree", &reply.stderr);
    assert!(kubectl.absent(&["pod", "second", "-n", "team"]));
    kubectl
        .apply(&manifests::pod("second", true), &[])
        .accepted_silently();
}
