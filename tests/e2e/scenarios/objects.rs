//! The lifecycle of lockkeeper's own objects.

use super::Scenario;
use crate::fixture::{self, DEFAULTS, Fixture};
use crate::kubectl::Kubectl;
use crate::lockkeeper::Protocol;
use crate::manifests::{self, BAD_CLUSTER_QUEUE, CLUSTER_OBJECTS, GLOBAL_DEFAULT};
use crate::snapshot;
use crate::wait;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new("missing fields get their defaults", defaulting),
        Scenario::new("an update that violates a rule is rejected", broken_update),
        Scenario::new("a change of the priority class is rejected", class_change),
        Scenario::new("objects can be deleted", deleted),
        Scenario::new("a dry run stores nothing", dry_run),
        Scenario::new(
            "a class and a workload of it are accepted in one file",
            class_and_user,
        ),
    ]
}

fn cluster_objects(stage: &mut Fixture, protocol: Protocol) -> Kubectl {
    let kubectl = stage.with_server(protocol, DEFAULTS);
    kubectl
        .apply(CLUSTER_OBJECTS, &[])
        .expect_accepted_without_warning();
    kubectl
}

fn defaulting(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = cluster_objects(stage, protocol);
    kubectl
        .apply(GLOBAL_DEFAULT, &[])
        .expect_accepted_without_warning();
    // The webhook observes a default class a moment after its creation.
    let workload = manifests::workload("team", "train");
    wait::until(
        || {
            let reply = kubectl
                .apply(&workload, &["--dry-run=server", "-o", "json"])
                .expect_accepted();
            Ok(reply.stdout.contains("usual").then_some(()))
        },
        || "the default class is not filled in".to_owned(),
    )
    .unwrap();
    kubectl
        .apply(&workload, &[])
        .expect_accepted_without_warning();

    let stored = kubectl.get(&["workloads.lockkeeper.dev", "train", "-n", "team"]);
    assert_eq!(stored["spec"]["priorityClassName"], "usual");
    assert_eq!(stored["spec"]["preemptionPriorityClassName"], "usual");
    assert_eq!(stored["spec"]["podSets"][0]["name"], "main");

    let queue = kubectl.get(&["clusterqueues.lockkeeper.dev", "research"]);
    assert_eq!(
        queue["metadata"]["finalizers"][0],
        "lockkeeper.dev/resource-in-use"
    );
    snapshot::check("filled-in-cluster-queue", &format!("{:#}", queue["spec"]));
    let flavor = kubectl.get(&["resourceflavors.lockkeeper.dev", "default"]);
    assert_eq!(
        flavor["metadata"]["finalizers"][0],
        "lockkeeper.dev/resource-in-use"
    );
    // The same manifest again changes nothing.
    kubectl
        .apply(&workload, &[])
        .expect_accepted_without_warning();
    let again = kubectl.get(&["workloads.lockkeeper.dev", "train", "-n", "team"]);
    assert_eq!(again["spec"], stored["spec"]);
    assert_eq!(
        again["metadata"]["generation"],
        stored["metadata"]["generation"]
    );
}

fn broken_update(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = cluster_objects(stage, protocol);
    let more = CLUSTER_OBJECTS.replace("lendingLimit: 4", "lendingLimit: 9");
    let reply = kubectl.apply(&more, &[]).expect_rejected();
    snapshot::check("update-that-breaks-a-rule", &reply.stderr);
    let queue = kubectl.get(&["clusterqueues.lockkeeper.dev", "research"]);
    let quota = &queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0];
    assert_eq!(quota["lendingLimit"].to_string().trim_matches('"'), "4");

    let less = CLUSTER_OBJECTS.replace("lendingLimit: 4", "lendingLimit: 8");
    kubectl.apply(&less, &[]).expect_accepted_without_warning();
}

fn class_change(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = cluster_objects(stage, protocol);
    let low = manifests::workload_of_class("team", "train", "low");
    kubectl.apply(&low, &[]).expect_accepted_without_warning();
    let high = manifests::workload_of_class("team", "train", "high");
    let reply = kubectl.apply(&high, &[]).expect_rejected();
    snapshot::check("change-of-the-priority-class", &reply.stderr);
}

fn deleted(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = cluster_objects(stage, protocol);
    let workload = manifests::workload_of_class("team", "train", "low");
    kubectl
        .apply(&workload, &[])
        .expect_accepted_without_warning();
    let train = ["workloads.lockkeeper.dev", "train", "-n", "team"];
    let delete = ["delete", "-n", "team", "workloads.lockkeeper.dev", "train"];
    kubectl.run(&delete).expect_accepted_without_warning();
    assert!(kubectl.absent(&train));

    // The finalizer keeps the queue until the controller finds that it is not in use.
    let research = ["clusterqueues.lockkeeper.dev", "research"];
    let delete = ["delete", "--wait=false", research[0], research[1]];
    let reply = kubectl.run(&delete).expect_accepted();
    assert!(reply.stderr.contains("still use it"), "{}", reply.stderr);
    let held = kubectl.get(&research);
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    fixture::remove_finalizers(&kubectl, &held);
    assert!(kubectl.absent(&research));
}

fn dry_run(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = cluster_objects(stage, protocol);
    let train = ["workloads.lockkeeper.dev", "train", "-n", "team"];
    let good = manifests::workload_of_class("team", "train", "low");
    let reply = kubectl
        .apply(&good, &["--dry-run=server"])
        .expect_accepted_without_warning();
    assert!(
        reply.stdout.ends_with("created (server dry run)\n"),
        "{}",
        reply.stdout
    );
    assert!(kubectl.absent(&train));

    let bad = manifests::workload_of_class("team", "train", "unheard-of");
    let reply = kubectl.apply(&bad, &["--dry-run=server"]).expect_rejected();
    snapshot::check("unknown-priority-class", &reply.stderr);
    assert!(kubectl.absent(&train));

    kubectl
        .apply(BAD_CLUSTER_QUEUE, &["--dry-run=server"])
        .expect_rejected();
    assert!(kubectl.absent(&["clusterqueues.lockkeeper.dev", "generous"]));
}

fn class_and_user(stage: &mut Fixture, protocol: Protocol) {
    let kubectl = cluster_objects(stage, protocol);
    let class = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: brand-new}
value: 300
";
    let user = manifests::workload_of_class("team", "train", "brand-new");
    kubectl
        .apply(&manifests::file(&[class, &user]), &[])
        .expect_accepted_without_warning();
    let stored = kubectl.get(&["workloads.lockkeeper.dev", "train", "-n", "team"]);
    assert_eq!(stored["spec"]["preemptionPriorityClassName"], "brand-new");
}
