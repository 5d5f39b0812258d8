use super::SinglePod;
use crate::job_adapters::pod_template::tests::random_template;
use crate::job_adapters::{JobAdapter, JobView, PodPlacement, strip_template};
use lockkeeper_testkit::Rng;
use serde_json::{Value, json};

fn pod(change: &Value) -> Value {
    let mut pod = json!({
        "metadata": {
            "name": "p", "namespace": "team", "uid": "u", "resourceVersion": "7", "generation": 1,
            "labels": {"lockkeeper.dev/queue-name": "q"},
        },
        "spec": {
            "schedulingGates": [{"name": "lockkeeper.dev/admission"}],
            "containers": [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Pending"},
    });
    json_patch::merge(&mut pod, change);
    pod
}

fn view(change: &Value) -> JobView {
    SinglePod.parse(pod(change)).unwrap()
}

#[test]
fn pod_runs_once_its_gate_is_removed() {
    let none = json!(null);
    for (name, change, is_suspended, has_ended) in [
        ("gated", json!({}), true, false),
        (
            "other gate",
            json!({"spec": {"schedulingGates": [{"name": "x/y"}]}}),
            false,
            false,
        ),
        (
            "ungated",
            json!({"spec": {"schedulingGates": none}}),
            false,
            false,
        ),
        (
            "succeeded",
            json!({"spec": {"schedulingGates": none}, "status": {"phase": "Succeeded"}}),
            true,
            true,
        ),
        (
            "failed",
            json!({"spec": {"schedulingGates": none}, "status": {"phase": "Failed"}}),
            true,
            true,
        ),
    ] {
        let view = view(&change);
        assert_eq!(view.is_suspended, is_suspended, "{name}");
        assert_eq!(view.is_stopped(), is_suspended, "{name}");
        assert_eq!(view.result.is_some(), has_ended, "{name}");
        assert!(!view.is_start_unconfirmed, "{name}");
    }
}

/// A user chooses the grace period, and the pod runs until its end.
#[test]
fn deleted_pod_runs_until_its_grace_period_is_over() {
    let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:30Z"});
    let runs = view(&json!({"metadata": metadata, "spec": {"schedulingGates": null}}));
    assert!(!runs.is_stopped() && runs.result.is_none());
    assert_eq!(runs.termination_end_s, Some(1_767_225_630));
    let waits = view(&json!({"metadata": metadata}));
    assert!(waits.is_stopped() && waits.result.is_some());
    assert_eq!(waits.termination_end_s, None);
}

#[test]
fn start_removes_only_the_gate_of_the_controller() {
    let gates = json!([{"name": "x/y"}, {"name": "lockkeeper.dev/admission"}]);
    let with_other = view(&json!({"spec": {"schedulingGates": gates}}));
    assert_eq!(
        SinglePod.start_patch(&with_other),
        json!({"schedulingGates": [{"name": "x/y"}]})
    );
    assert_eq!(
        SinglePod.start_patch(&view(&json!({}))),
        json!({"schedulingGates": null})
    );
}

#[test]
fn placement_adds_to_selector_and_tolerations() {
    let toleration = json!({"key": "own", "operator": "Exists"});
    let spec = json!({"nodeSelector": {"disk": "fast"}, "tolerations": [toleration]});
    let view = view(&json!({"spec": spec}));
    let mut placed = view.original_placement();
    let placement: &mut PodPlacement = &mut placed[0];
    placement
        .node_selector
        .insert("kind".to_owned(), "spot".to_owned());
    let patch = SinglePod.placement_patch(&view, None, &placed);
    assert_eq!(patch, Some(json!({"nodeSelector": {"kind": "spot"}})));
}

/// A claim of an owner exempts no pod from its quota.
#[test]
fn owner_of_pod_is_not_read() {
    let owner = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "u", "controller": true});
    assert_eq!(
        view(&json!({"metadata": {"ownerReferences": [owner]}})).parent,
        None
    );
}

#[test]
fn label_precedes_class_of_pod() {
    let of_pod = json!({"spec": {"priorityClassName": "low"}});
    assert_eq!(view(&of_pod).priority_class.as_deref(), Some("low"));
    let mut both = of_pod;
    both["metadata"] = json!({"labels": {"lockkeeper.dev/priority-class": "high"}});
    assert_eq!(view(&both).priority_class.as_deref(), Some("high"));
    assert_eq!(view(&json!({})).priority_class, None);
}

/// The workload has what decisions read, and nothing that may be secret or large.
#[test]
fn template_has_only_the_fields_that_decisions_read() {
    let labels = json!({"quota.scheduling.koordinator.sh/preemptible": "false", "app": "a"});
    let container = json!({
        "name": "a", "image": "b", "env": [{"name": "TOKEN", "value": "secret"}],
        "resources": {"requests": {"cpu": "1"}},
    });
    let view = view(&json!({
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]},
    }));
    let templates = SinglePod.templates(view.template_source.text().unwrap());
    assert_eq!(
        templates,
        [json!({
            "metadata": {"labels": {"quota.scheduling.koordinator.sh/preemptible": "false"}},
            "spec": {"containers": [
                {"name": "a", "image": "b", "resources": {"requests": {"cpu": "1"}}},
            ]},
        })]
    );
}

/// The Workload of a pod has the template of the pod whatever fields are empty: otherwise the controller would write it again
/// and again.
#[test]
fn stored_template_is_that_of_the_pod() {
    let mut rng = Rng::new(11);
    for case in 0..2_000 {
        let template = random_template(&mut rng);
        let mut object = pod(&json!({}));
        object["metadata"]["labels"] = template["metadata"]["labels"].clone();
        let gates = object["spec"]["schedulingGates"].clone();
        object["spec"] = template["spec"].clone();
        object["spec"]["schedulingGates"] = gates;
        let view = SinglePod.parse(object).unwrap();
        let text = view.template_source.text().unwrap();
        let stored: Value = serde_json::from_str(text).unwrap();
        let stored = serde_json::from_value(stored).unwrap();
        let of_pod = &view.pod_sets[0].template;
        assert_eq!(
            strip_template(stored),
            **of_pod,
            "case {case}: {template:#}"
        );
    }
}
