//! Groups of pods with the queue label: their pods start together, and stop together.

use serde_json::{Value, json};

use super::fixture::{ControllerFixture, NO_LEADER_ELECTION};
use super::pods::{
    is_gated, is_running, open, open_with_preemption, pod, pod_template, wait_for_usage,
};
use super::{Trial, render};
use crate::fixture::{DEFAULTS, Fixture};
use crate::objects::merge;
use crate::wait;

pub const TRIALS: [Trial; 8] = [
    ("pods of a group start together", start_together),
    ("a preempted group stops as a whole", preempted),
    ("a pod of a StatefulSet in a group is replaced", replaced),
    (
        "groups of a LeaderWorkerSet wait for all their pods",
        leader_worker_set,
    ),
    (
        "gangs of other schedulers start with their least number of pods",
        other_schedulers,
    ),
    (
        "a pod that has lost its label is stopped before the quota of its group is released",
        without_label,
    ),
    ("a group ends with its pods", ends),
    ("a pod that differs from its group waits", differs),
];

/// They need the PodGroup of `scheduling.k8s.io/v1beta1`.
pub const KUBERNETES_TRIALS: [Trial; 2] = [
    (
        "pods of a PodGroup of Kubernetes start with its least number",
        scheduling_group,
    ),
    (
        "pods of a PodGroup with the policy basic start one by one",
        basic_pod_group,
    ),
];

const CONDITION: &str = "lockkeeper.dev/PodGroup";

/// The labels and annotations of a pod of a group of this many pods.
fn group(name: &str, total: u32) -> Value {
    json!({"metadata": {
        "labels": {"lockkeeper.dev/pod-group-name": name},
        "annotations": {"lockkeeper.dev/pod-group-total-count": total.to_string()},
    }})
}

fn create(site: &ControllerFixture<'_>, names: &[&str], class: &str, more: &Value) {
    for name in names {
        site.objects.create(&pod(name, 1, class, more));
    }
}

/// Waits until the pods with these names run.
#[track_caller]
fn wait_until_all_run(site: &ControllerFixture<'_>, names: &[&str]) {
    for name in names {
        site.objects.wait_until("Pod", name, is_running);
    }
}

fn wait_for_report(site: &ControllerFixture<'_>, name: &str, reason: &str) {
    site.objects.wait_until("Pod", name, |it| {
        let condition = render::condition(it, CONDITION);
        condition.is_some_and(|it| it["status"] == "False" && it["reason"] == reason)
    });
    assert!(is_gated(&site.objects.get("Pod", name)));
}

/// The only workload, once it exists.
fn workload(site: &ControllerFixture<'_>) -> Value {
    let mut found = Value::Null;
    let result = wait::until(
        || {
            let mut all = site.objects.list("Workload");
            if all.len() > 1 {
                return Err(format!("more than one workload: {all:#?}"));
            }
            let first = all.pop();
            let exists = first.is_some();
            found = first.unwrap_or_default();
            Ok(exists.then_some(()))
        },
        || "there is no workload".to_owned(),
    );
    result.unwrap_or_else(|e| panic!("{e}"));
    found
}

/// Waits until a workload with another name waits for quota.
fn wait_until_pending(site: &ControllerFixture<'_>, other: &Value) {
    let result = wait::until(
        || {
            let all = site.objects.list("Workload");
            let mut all = all.iter().filter(|it| it["metadata"]["name"] != *other);
            let is_pending = |it: &Value| {
                let condition = render::condition(it, "QuotaReserved");
                condition.is_some_and(|it| it["reason"] == "WaitingForQuota")
            };
            Ok(all.any(is_pending).then_some(()))
        },
        || "no workload waits for quota".to_owned(),
    );
    result.unwrap_or_else(|e| panic!("{e}"));
}

fn start_together(stage: &mut Fixture) {
    let mut site = open(stage);
    create(&site, &["a", "b", "c"], "", &group("train", 4));
    wait_for_report(&site, "a", "PodGroupIncomplete");
    assert!(site.objects.list("Workload").is_empty());
    create(&site, &["d"], "", &group("train", 4));
    wait_until_all_run(&site, &["a", "b", "c", "d"]);
    let workload = workload(&site);
    assert_eq!(workload["spec"]["podSets"][0]["count"], 4, "{workload:#}");
    wait_for_usage(&site, "4");
    // A group that does not fit starts no pod.
    let name = workload["metadata"]["name"].clone();
    create(&site, &["e", "f"], "", &group("next", 2));
    wait_until_pending(&site, &name);
    for pod in ["e", "f"] {
        assert!(is_gated(&site.objects.get("Pod", pod)), "{pod}");
    }
    for pod in ["a", "b", "c", "d"] {
        site.objects.delete("Pod", pod);
    }
    wait_until_all_run(&site, &["e", "f"]);
    site.stop();
}

fn preempted(stage: &mut Fixture) {
    let mut site = open_with_preemption(stage);
    create(&site, &["a", "b", "c"], "low", &group("train", 3));
    wait_until_all_run(&site, &["a", "b", "c"]);
    site.objects.create(&pod("high", 2, "high", &json!({})));
    for name in ["a", "b", "c"] {
        site.objects.wait_until_gone("Pod", name);
    }
    wait_until_all_run(&site, &["high"]);
    // The pods that replace them wait together.
    create(&site, &["a", "b", "c"], "low", &group("train", 3));
    site.objects.wait_until("Pod", "c", is_gated);
    site.objects.delete("Pod", "high");
    wait_until_all_run(&site, &["a", "b", "c"]);
    site.stop();
}

fn replaced(stage: &mut Fixture) {
    let mut site = open(stage);
    let mut template = pod_template("q", 1);
    merge(&mut template, &group("serve", 4));
    site.objects.create(&json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "serve", "namespace": "default"},
        "spec": {
            "replicas": 4, "serviceName": "serve", "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "a"}},
            "template": template,
        },
    }));
    let names = ["serve-0", "serve-1", "serve-2", "serve-3"];
    wait_until_all_run(&site, &names);
    let before = workload(&site);
    let uid = site.objects.get("Pod", "serve-2")["metadata"]["uid"].clone();
    site.objects.delete("Pod", "serve-2");
    site.objects.wait_until("Pod", "serve-2", |it| {
        is_running(it) && it["metadata"]["uid"] != uid
    });
    let after = workload(&site);
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert!(render::has_status(&after, "Admitted", "True"), "{after:#}");
    site.stop();
}

/// The pods of a group of a `LeaderWorkerSet`, as its controller creates them: a leader, and two workers.
fn leader_worker_set(stage: &mut Fixture) {
    let mut site = open(stage);
    let member = |group: u32, at: u32| {
        let labels = json!({
            "leaderworkerset.sigs.k8s.io/name": "serve",
            "leaderworkerset.sigs.k8s.io/group-index": group.to_string(),
            "leaderworkerset.sigs.k8s.io/worker-index": at.to_string(),
        });
        let annotations = json!({"leaderworkerset.sigs.k8s.io/size": "3"});
        let more = json!({"metadata": {"labels": labels, "annotations": annotations}});
        let (name, cpu) = match at {
            0 => (format!("serve-{group}"), 2),
            _ => (format!("serve-{group}-{at}"), 1),
        };
        pod(&name, cpu, "", &more)
    };
    let create_group = |group: u32| {
        for at in [0, 1, 2] {
            site.objects.create(&member(group, at));
        }
    };
    create_group(0);
    wait_until_all_run(&site, &["serve-0", "serve-0-1", "serve-0-2"]);
    // The order of Workloads of the same second is undefined, so the second group comes later.
    let first = workload(&site)["metadata"]["name"].clone();
    create_group(1);
    wait_until_pending(&site, &first);
    for name in ["serve-1", "serve-1-1", "serve-1-2"] {
        assert!(is_gated(&site.objects.get("Pod", name)), "{name}");
    }
    for name in ["serve-0", "serve-0-1", "serve-0-2"] {
        site.objects.delete("Pod", name);
    }
    wait_until_all_run(&site, &["serve-1", "serve-1-1", "serve-1-2"]);
    site.stop();
}

/// Groups by the labels of lightweight coscheduling and by Koordinator's annotations.
fn other_schedulers(stage: &mut Fixture) {
    let mut site = open(stage);
    let coscheduling = json!({"metadata": {"labels": {
        "pod-group.scheduling.sigs.k8s.io/name": "light",
        "pod-group.scheduling.sigs.k8s.io/min-available": "2",
    }}});
    let koordinator = json!({"metadata": {"annotations": {
        "gang.scheduling.koordinator.sh/name": "gang",
        "gang.scheduling.koordinator.sh/min-available": "2",
        "gang.scheduling.koordinator.sh/total-number": "3",
    }}});
    create(&site, &["light-0"], "", &coscheduling);
    create(&site, &["gang-0"], "", &koordinator);
    for name in ["light-0", "gang-0"] {
        wait_for_report(&site, name, "PodGroupIncomplete");
    }
    create(&site, &["light-1"], "", &coscheduling);
    create(&site, &["gang-1"], "", &koordinator);
    wait_until_all_run(&site, &["light-0", "light-1", "gang-0", "gang-1"]);
    // The gang was admitted without it.
    create(&site, &["gang-2"], "", &koordinator);
    wait_for_report(&site, "gang-2", "PodGroupFull");
    site.stop();
}

/// A `PodGroup` with this scheduling policy.
fn pod_group(name: &str, policy: &Value) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy},
    })
}

fn of_pod_group(name: &str) -> Value {
    json!({"spec": {"schedulingGroup": {"podGroupName": name}}})
}

/// kube-scheduler starts the pods of the group together as well, once their gates are removed.
fn scheduling_group(stage: &mut Fixture) {
    let mut site = open(stage);
    let of_train = of_pod_group("train");
    create(&site, &["a", "b"], "", &of_train);
    wait_for_report(&site, "a", "PodGroupNotFound");
    let gang = json!({"gang": {"minCount": 3}});
    let mut whole = pod_group("train", &gang);
    whole["spec"]["disruptionMode"] = json!({"all": {}});
    site.objects.create(&whole);
    wait_for_report(&site, "a", "PodGroupIncomplete");
    assert!(site.objects.list("Workload").is_empty());
    create(&site, &["c"], "", &of_train);
    wait_until_all_run(&site, &["a", "b", "c"]);
    let train = workload(&site);
    let mode = &train["spec"]["podGroups"][0]["disruptionMode"];
    assert_eq!(mode, "PodGroup", "{train:#}");
    let name = train["metadata"]["name"].clone();
    wait_for_usage(&site, "3");
    // A group that does not fit starts no pod.
    site.objects
        .create(&pod_group("next", &json!({"gang": {"minCount": 2}})));
    create(&site, &["d", "e"], "", &of_pod_group("next"));
    wait_until_pending(&site, &name);
    for pod in ["d", "e"] {
        assert!(is_gated(&site.objects.get("Pod", pod)), "{pod}");
    }
    // It starts with fewer pods.
    let fewer = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}});
    site.objects.patch("PodGroup", "next", &fewer);
    site.objects.delete("Pod", "e");
    wait_until_all_run(&site, &["d"]);
    // The annotation allows more pods, if they exist when the group is admitted.
    for pod in ["a", "b", "c"] {
        site.objects.delete("Pod", pod);
        site.objects.wait_until_gone("Pod", pod);
    }
    let mut larger = of_pod_group("more");
    let total = json!({"lockkeeper.dev/pod-group-total-count": "2"});
    larger["metadata"] = json!({"annotations": total});
    create(&site, &["e", "f"], "", &larger);
    let least = json!({"gang": {"minCount": 1}});
    site.objects.create(&pod_group("more", &least));
    wait_until_all_run(&site, &["e", "f"]);
    site.stop();
}

fn basic_pod_group(stage: &mut Fixture) {
    let mut site = open(stage);
    site.objects
        .create(&pod_group("serve", &json!({"basic": {}})));
    create(
        &site,
        &["a", "b", "c", "d", "e"],
        "",
        &of_pod_group("serve"),
    );
    wait_for_usage(&site, "4");
    assert_eq!(site.objects.list("Workload").len(), 5);
    site.stop();
}

/// The label is removed while no controller runs.
fn without_label(stage: &mut Fixture) {
    let mut site = open(stage);
    create(&site, &["a", "b"], "", &group("train", 2));
    wait_until_all_run(&site, &["a", "b"]);
    let name = workload(&site)["metadata"]["name"].clone();
    drop(site.controller.take());
    let without = json!({"metadata": {"labels": {
        "lockkeeper.dev/queue-name": null, "lockkeeper.dev/pod-group-name": null,
    }}});
    site.objects.patch("Pod", "a", &without);
    let stopped = json!({"spec": {"active": false}});
    site.objects
        .patch("Workload", name.as_str().expect("a name"), &stopped);
    // Any user may give another pod the label; it is not one of the group.
    let uid = workload(&site)["metadata"]["labels"]["lockkeeper.dev/job-uid"].clone();
    let foreign = json!({"metadata": {"labels": {"lockkeeper.dev/job-uid": uid}}});
    create(&site, &["other"], "", &foreign);
    site.start_controller(DEFAULTS, &[NO_LEADER_ELECTION]);
    for pod in ["a", "b"] {
        site.objects.wait_until_gone("Pod", pod);
    }
    wait_until_all_run(&site, &["other"]);
    wait_for_usage(&site, "1");
    site.stop();
}

fn ends(stage: &mut Fixture) {
    let mut site = open(stage);
    let mut more = group("train", 2);
    merge(
        &mut more,
        &json!({
            "metadata": {"annotations": {"test.lockkeeper.dev/run-for": "0s"}},
            "spec": {"restartPolicy": "Never"},
        }),
    );
    create(&site, &["a", "b"], "", &more);
    let name = workload(&site)["metadata"]["name"].clone();
    let name = name.as_str().expect("a name").to_owned();
    let finished = site.objects.wait_until("Workload", &name, |it| {
        render::has_status(it, "Finished", "True")
    });
    assert_eq!(render::reason(&finished, "Finished"), "Succeeded");
    create(&site, &["late"], "", &group("train", 2));
    wait_for_report(&site, "late", "PodGroupFinished");
    for pod in ["a", "b", "late"] {
        site.objects.delete("Pod", pod);
    }
    // No other object owns it.
    site.objects.wait_until_gone("Workload", &name);
    site.stop();
}

fn differs(stage: &mut Fixture) {
    let mut site = open(stage);
    create(&site, &["a"], "", &group("train", 2));
    wait_for_report(&site, "a", "PodGroupIncomplete");
    create(&site, &["b"], "high", &group("train", 2));
    wait_for_report(&site, "b", "PodGroupInvalid");
    create(&site, &["c"], "", &group("train", 2));
    wait_until_all_run(&site, &["a", "c"]);
    create(&site, &["d"], "", &group("train", 2));
    wait_for_report(&site, "d", "PodGroupFull");
    site.stop();
}
