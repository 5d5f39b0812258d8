//! Answers of a preview, by the objects of the cluster.

use super::{Preview, PreviewSettings, PreviewState, submitted_workload};
use crate::job_adapters::JobKinds;
use crate::key::{Kind, ObjectKey};
use crate::reconciler::{Change, Input};
use lockkeeper_preemption::requeue::RequeueSettings;
use serde_json::{Value, json};

const NOW_MS: i64 = 1_700_000_000_000;

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// One ClusterQueue `q` with 4 cpu of flavor `f`, a LocalQueue `q` in the namespaces `a` and `b`, and the classes `low` and `high`.
struct Stage {
    state: PreviewState,
}

impl Stage {
    fn new(settings: PreviewSettings) -> Self {
        let mut stage = Self {
            state: PreviewState::new(settings),
        };
        for kind in Kind::FIXED {
            stage.state.handle_input(NOW_MS, Input::Listed(kind));
        }
        stage.queue(json!({}));
        let group = "lockkeeper.dev/v1alpha1";
        stage.set(
            Kind::ResourceFlavor,
            json!({"apiVersion": group, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": {}}),
        );
        for namespace in ["a", "b"] {
            stage.set(
                Kind::LocalQueue,
                json!({"apiVersion": group, "kind": "LocalQueue",
                    "metadata": {"name": "q", "namespace": namespace}, "spec": {"clusterQueue": "q"}}),
            );
            stage.set(
                Kind::Namespace,
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            );
        }
        for (name, value) in [("low", 1), ("high", 9)] {
            stage.set(
                Kind::PriorityClass,
                json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                    "metadata": {"name": name}, "value": value}),
            );
        }
        stage
    }

    fn set(&mut self, kind: Kind, object: Value) {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        let namespace = text("/metadata/namespace").unwrap_or_default();
        let key = ObjectKey::new(namespace, text("/metadata/name").unwrap());
        let input = Input::applied(kind, key, object);
        self.state.handle_input(NOW_MS, input);
    }

    fn queue(&mut self, more: Value) {
        let mut queue = json!({
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "ClusterQueue", "metadata": {"name": "q"},
            "spec": {
                "namespaceSelector": {},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
                    {"name": "f", "resources": [{"name": "cpu", "nominalQuota": 4}]}]}],
            },
        });
        merge(&mut queue, more);
        self.set(Kind::ClusterQueue, queue);
    }

    /// A workload with quota.
    fn admitted(&mut self, namespace: &str, name: &str, cpu: u32, is_ready: bool) {
        let mut it = workload(namespace, name, "low", cpu);
        let ready = if is_ready { "True" } else { "False" };
        let condition = |of: &str, status: &str| {
            json!({"type": of, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2023-11-14T22:00:00Z"})
        };
        it["status"] = json!({
            "admission": {"clusterQueue": "q", "podSetAssignments": [
                {"name": "main", "count": 1, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu.to_string()}}]},
            "conditions": [condition("QuotaReserved", "True"), condition("Admitted", "True"),
                condition("PodsReady", ready)],
        });
        self.set(Kind::Workload, it);
    }

    fn preview_of(&mut self, workload: Value) -> Option<Preview> {
        self.preview_at(NOW_MS, workload)
    }

    fn preview_at(&mut self, now_ms: i64, workload: Value) -> Option<Preview> {
        assert!(self.state.settle(now_ms, 100));
        let submitted = submitted_workload(&JobKinds::default(), workload, now_ms).unwrap();
        self.state.preview(now_ms, submitted)
    }

    fn text_of(&mut self, workload: Value) -> String {
        self.preview_of(workload).unwrap().to_string()
    }
}

fn workload(namespace: &str, name: &str, class: &str, cpu: u32) -> Value {
    json!({
        "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2023-11-14T22:00:00Z"},
        "spec": {"queueName": "q", "priorityClassName": class, "podSets": [{"name": "main", "count": 1,
            "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}}}]}}}]},
    })
}

fn stage() -> Stage {
    Stage::new(PreviewSettings::default())
}

#[test]
fn a_workload_that_fits_starts() {
    let mut stage = stage();
    assert_eq!(
        stage.text_of(workload("a", "w", "low", 4)),
        "runs now on flavor f"
    );
    // Nothing of it stays in the state.
    assert_eq!(
        stage.text_of(workload("a", "v", "low", 4)),
        "runs now on flavor f"
    );
}

#[test]
fn victims_are_counted_by_namespace() {
    let mut stage = stage();
    stage.admitted("a", "mine", 2, true);
    stage.admitted("b", "theirs", 2, true);
    assert_eq!(
        stage.text_of(workload("a", "w", "high", 4)),
        "would preempt 2 workloads (1 of this namespace, 1 of other namespaces)"
    );
}

#[test]
fn a_pending_workload_that_the_next_cycle_admits_counts_as_admitted() {
    let mut stage = stage();
    stage.set(Kind::Workload, workload("b", "first", "low", 4));
    assert_eq!(
        stage.text_of(workload("a", "w", "low", 1)),
        "waits in ClusterQueue q: flavor f: not free, and there are no candidate workloads for preemption"
    );
}

#[test]
fn a_blocked_head_needs_no_cycle_before_the_next_preview() {
    let mut stage = stage();
    stage.queue(json!({"spec": {"queueingStrategy": "StrictFIFO"}}));
    stage.admitted("b", "running", 4, true);
    stage.set(Kind::Workload, workload("b", "first", "low", 4));
    let answer = stage.text_of(workload("a", "w", "low", 1));
    assert!(answer.starts_with("waits in ClusterQueue q"), "{answer}");
    assert!(stage.state.settle(NOW_MS, 0));
}

#[test]
fn a_decision_without_a_write_is_withdrawn() {
    let mut stage = stage();
    stage.set(Kind::Workload, workload("b", "first", "low", 3));
    let waits = stage.preview_of(workload("a", "w", "low", 3));
    assert!(matches!(waits, Some(Preview::Waits { .. })), "{waits:?}");
    let deleted = Input::applied(Kind::Workload, ObjectKey::new("b", "first"), {
        let mut held = workload("b", "first", "low", 3);
        held["spec"]["active"] = json!(false);
        held["metadata"]["resourceVersion"] = json!("2");
        held
    });
    stage.state.handle_input(NOW_MS, deleted);
    let starts = stage.preview_of(workload("a", "w", "low", 3));
    assert!(matches!(starts, Some(Preview::Starts { .. })), "{starts:?}");
}

#[test]
fn an_eviction_without_a_write_is_withdrawn_after_ten_seconds() {
    let mut stage = stage();
    stage.admitted("b", "victim", 4, true);
    stage.set(Kind::Workload, workload("b", "preemptor", "high", 4));
    let high = || workload("a", "w", "high", 4);
    // The victim of the pending preemptor is being evicted, and its quota is not free yet.
    let waits = stage.preview_of(high());
    assert!(matches!(waits, Some(Preview::Waits { .. })), "{waits:?}");
    // The preemptor is gone: whether the eviction is written is unknown.
    let gone = crate::reconciler::Change::Deleted(ObjectKey::new("b", "preemptor"));
    stage.state.handle_input(NOW_MS, Input::Workload(gone));
    let before = stage.preview_at(NOW_MS + 9_999, high());
    assert!(
        !matches!(before, Some(Preview::Preempts { .. })),
        "{before:?}"
    );
    let after = stage.preview_at(NOW_MS + 10_000, high());
    assert!(matches!(after, Some(Preview::Preempts { .. })), "{after:?}");
}

#[test]
fn nothing_starts_while_an_adoption_reserves_quota() {
    let mut stage = stage();
    let mut adoption = workload("b", "job-running", "low", 1);
    adoption["metadata"]["annotations"] = json!({"lockkeeper.dev/adoption": "Requested"});
    stage.set(Kind::Workload, adoption.clone());
    let new = || workload("a", "w", "low", 1);
    let held = "waits in ClusterQueue q behind 1 workload: lockkeeper adopt reserves quota in the same cohort, for \
        at most two minutes";
    assert_eq!(stage.text_of(new()), held);
    // The command was interrupted.
    adoption["metadata"]["annotations"] = json!({"lockkeeper.dev/adoption": "Observed"});
    stage.set(Kind::Workload, adoption.clone());
    assert!(matches!(
        stage.preview_at(NOW_MS + 119_000, new()),
        Some(Preview::Waits { .. })
    ));
    assert!(matches!(
        stage.preview_at(NOW_MS + 121_000, new()),
        Some(Preview::Starts { .. })
    ));
    // It continues, and then has its quota.
    adoption["metadata"]["annotations"] = json!({"lockkeeper.dev/adoption": "Requested"});
    stage.set(Kind::Workload, adoption);
    assert_eq!(stage.text_of(new()), held);
    stage.admitted("b", "job-running", 1, true);
    assert_eq!(stage.text_of(new()), "runs now on flavor f");
}

#[test]
fn what_no_change_of_usage_can_help_is_never_admitted() {
    let mut stage = stage();
    let mut gpu = workload("a", "gpu", "low", 1);
    gpu["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"] =
        json!({"nvidia.com/gpu": "1"});
    let mut no_queue = workload("a", "no-queue", "low", 1);
    no_queue["spec"]["queueName"] = json!("absent");
    for (workload, expected) in [
        (
            gpu,
            "never runs until an object changes: Resource not covered",
        ),
        (
            no_queue,
            "never runs until an object changes: LocalQueue absent does not exist in its namespace",
        ),
        (
            workload("a", "large", "low", 5),
            "never runs until an object changes: flavor f: requests 5 cpu, and the maximum",
        ),
        (
            workload("c", "other", "low", 1),
            "never runs until an object changes: LocalQueue q does not exist in its namespace",
        ),
    ] {
        let text = stage.text_of(workload);
        assert!(text.starts_with(expected), "{text}");
    }
    stage.queue(json!({"spec": {"stopPolicy": "Hold"}}));
    let text = stage.text_of(workload("a", "w", "low", 1));
    assert!(
        text.starts_with("never runs until an object changes: "),
        "{text}"
    );
    stage.queue(json!({"spec": {"namespaceSelector": {"matchLabels": {"team": "x"}}}}));
    let text = stage.text_of(workload("a", "w", "low", 1));
    assert!(text.contains("namespaceSelector"), "{text}");
}

#[test]
fn admission_waits_for_pods_with_block_admission() {
    let requeue = RequeueSettings {
        is_enabled: true,
        block_admission: true,
        ..RequeueSettings::default()
    };
    let mut stage = Stage::new(PreviewSettings {
        requeue,
        ..PreviewSettings::default()
    });
    stage.admitted("b", "starting", 1, false);
    assert_eq!(
        stage.text_of(workload("a", "w", "low", 1)),
        "waits in ClusterQueue q: the pods of another workload are not ready yet (blockAdmission)"
    );
    stage.admitted("b", "starting", 1, true);
    assert_eq!(
        stage.text_of(workload("a", "w", "low", 1)),
        "runs now on flavor f"
    );
}

#[test]
fn an_object_that_exists_has_no_preview() {
    let mut stage = stage();
    stage.admitted("a", "w", 1, true);
    assert_eq!(stage.preview_of(workload("a", "w", "low", 1)), None);
}

#[test]
fn only_objects_that_become_workloads_are_previewed() {
    let job = |more: Value| {
        let mut job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "j", "namespace": "a", "labels": {"lockkeeper.dev/queue-name": "q"}},
            "spec": {"suspend": true, "parallelism": 2, "completions": 2, "template": {"spec": {"containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}},
        });
        merge(&mut job, more);
        job
    };
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true}]);
    for (object, expected) in [
        (job(json!({})), true),
        (
            job(json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": ""}}})),
            false,
        ),
        (
            job(json!({"spec": {"managedBy": "example.com/other"}})),
            false,
        ),
        (job(json!({"spec": {"parallelism": "two"}})), false),
        (workload("a", "w", "low", 1), true),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}),
            false,
        ),
        (json!("text"), false),
    ] {
        let text = object.to_string();
        assert_eq!(
            submitted_workload(&JobKinds::default(), object, NOW_MS).is_some(),
            expected,
            "{text}"
        );
    }
    let mut with_owner = workload("a", "w", "low", 1);
    with_owner["metadata"]["ownerReferences"] = owner;
    assert_eq!(
        submitted_workload(&JobKinds::default(), with_owner, NOW_MS),
        None
    );
    // A status that the user sets has no effect.
    let mut with_status = workload("a", "w", "low", 1);
    with_status["status"] = json!({"priority": 1000});
    assert_eq!(
        submitted_workload(&JobKinds::default(), with_status, NOW_MS)
            .unwrap()
            .status,
        None
    );
}

#[test]
fn job_of_a_declared_kind_is_submitted() {
    let run = || {
        json!({
            "apiVersion": "example.com/v1", "kind": "Run",
            "metadata": {"name": "r", "namespace": "a", "labels": {"lockkeeper.dev/queue-name": "main"}},
            "spec": {"suspend": true, "template": {"spec": {"containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}},
        })
    };
    let declaration = |path: &str| {
        let declaration = json!({
            "metadata": {"name": "runs.example.com"},
            "spec": {"version": "v1", "kind": "Run", "podSets": [{"name": "main", "template": path}]},
        });
        Input::JobKind(Change::Applied(Box::new(
            serde_json::from_value(declaration).unwrap(),
        )))
    };
    let mut state = PreviewState::new(PreviewSettings::default());
    let is_submitted =
        |state: &PreviewState| submitted_workload(state.job_kinds(), run(), NOW_MS).is_some();
    assert!(!is_submitted(&state));
    state.handle_input(NOW_MS, declaration("spec.template"));
    assert!(is_submitted(&state));
    state.handle_input(NOW_MS, declaration("template"));
    assert!(!is_submitted(&state), "a declaration with a mistake");
    state.handle_input(NOW_MS, declaration("spec.template"));
    let key = ObjectKey::new("", "runs.example.com");
    state.handle_input(NOW_MS, Input::JobKind(Change::Deleted(key)));
    assert!(!is_submitted(&state));
}
