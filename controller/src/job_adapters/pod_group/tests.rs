use super::{GroupClaim, PodGroupSource, group_uid, template_text};
use crate::job_adapters::pod::SinglePod;
use crate::job_adapters::workload_identity::group_of_workload;
use crate::job_adapters::{JobAdapter, JobView};
use crate::key::ObjectKey;
use serde_json::{Value, json};

fn pod(change: &Value) -> JobView {
    let mut pod = json!({
        "metadata": {
            "name": "p", "namespace": "team", "uid": "u", "resourceVersion": "7",
            "creationTimestamp": "1970-01-01T00:01:00Z",
            "labels": {"lockkeeper.dev/queue-name": "q"},
        },
        "spec": {
            "schedulingGates": [{"name": "lockkeeper.dev/admission"}],
            "containers": [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "1"}}}],
        },
    });
    json_patch::merge(&mut pod, change);
    SinglePod.parse(pod).unwrap()
}

fn claim(metadata: &Value) -> Option<GroupClaim> {
    let view = pod(&json!({"metadata": metadata}));
    view.group.map(|it| *it)
}

#[test]
fn group_is_read_from_the_first_source_with_a_name() {
    let own = "lockkeeper.dev/pod-group-name";
    let own_total = "lockkeeper.dev/pod-group-total-count";
    let light = "pod-group.scheduling.sigs.k8s.io/name";
    let light_least = "pod-group.scheduling.sigs.k8s.io/min-available";
    let gang = "gang.scheduling.koordinator.sh/name";
    let gang_least = "gang.scheduling.koordinator.sh/min-available";
    let gang_total = "gang.scheduling.koordinator.sh/total-number";
    let lws = "leaderworkerset.sigs.k8s.io/name";
    let lws_group = "leaderworkerset.sigs.k8s.io/group-index";
    let lws_size = "leaderworkerset.sigs.k8s.io/size";
    for (metadata, expected) in [
        (json!({}), None),
        (
            json!({"labels": {own: "g", light: "h", light_least: "2"}, "annotations": {own_total: "3"}}),
            Some(("g", Some(3), 3)),
        ),
        (json!({"labels": {own: "g"}}), Some(("g", None, i32::MAX))),
        (
            json!({"labels": {own: "g"}, "annotations": {own_total: "0"}}),
            Some(("g", None, i32::MAX)),
        ),
        (
            json!({"labels": {own: "g"}, "annotations": {own_total: "many"}}),
            Some(("g", None, i32::MAX)),
        ),
        (
            json!({"labels": {light: "h", light_least: "2"}}),
            Some(("h", Some(2), 2)),
        ),
        (json!({"labels": {light: "h"}}), None),
        (
            json!({"annotations": {gang: "k", gang_least: "2", gang_total: "5"}}),
            Some(("k", Some(5), 2)),
        ),
        (
            json!({"annotations": {gang: "k", gang_least: "4", gang_total: "3"}}),
            Some(("k", Some(4), 4)),
        ),
        (
            json!({"annotations": {gang: "k", gang_least: "4"}}),
            Some(("k", Some(4), 4)),
        ),
        (json!({"annotations": {gang: "k"}}), None),
        (
            json!({"labels": {lws: "l", lws_group: "1"}, "annotations": {lws_size: "5"}}),
            Some(("l-1", Some(5), 5)),
        ),
        (
            json!({"labels": {lws: "l"}, "annotations": {lws_size: "5"}}),
            None,
        ),
    ] {
        let found = claim(&metadata);
        let found = found
            .as_ref()
            .map(|it| (it.group.name(), it.total, it.needed));
        assert_eq!(found, expected, "{metadata}");
    }
}

#[test]
fn pod_group_object_comes_after_the_own_label() {
    let own = "lockkeeper.dev/pod-group-name";
    let own_total = "lockkeeper.dev/pod-group-total-count";
    let light = "pod-group.scheduling.sigs.k8s.io/name";
    let light_least = "pod-group.scheduling.sigs.k8s.io/min-available";
    let spec = json!({"schedulingGroup": {"podGroupName": "k"}});
    for (metadata, expected) in [
        (json!({}), ("k", PodGroupSource::PodGroup { total: None })),
        (
            json!({"annotations": {own_total: "5"}}),
            ("k", PodGroupSource::PodGroup { total: Some(5) }),
        ),
        (
            json!({"labels": {light: "h", light_least: "2"}}),
            ("k", PodGroupSource::PodGroup { total: None }),
        ),
        (
            json!({"labels": {own: "g"}, "annotations": {own_total: "5"}}),
            ("g", PodGroupSource::Metadata),
        ),
    ] {
        let view = pod(&json!({"metadata": metadata, "spec": spec}));
        let claim = view.group.as_deref().unwrap();
        assert_eq!((claim.group.name(), claim.source), expected, "{metadata}");
        // A PodGroup may say that its pods start one by one, which takes the template.
        let is_kept = view.template_source.text().is_some();
        assert_eq!(
            is_kept,
            claim.source != PodGroupSource::Metadata,
            "{metadata}"
        );
    }
}

#[test]
fn pods_that_scheduling_treats_alike_have_one_shape() {
    let group = json!({"labels": {"lockkeeper.dev/pod-group-name": "g"}});
    let shape = |spec: &Value| {
        let view = pod(&json!({"metadata": group, "spec": spec}));
        view.group.unwrap().shape
    };
    let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let base = shape(&json!({}));
    assert_eq!(base.len(), "pods-".len() + 8);
    let other_image =
        json!({"containers": [{"name": "z", "image": "z", "resources": requests("1")}]});
    assert_eq!(shape(&other_image), base);
    for other in [
        json!({"containers": [{"name": "a", "image": "b", "resources": requests("2")}]}),
        json!({"nodeSelector": {"zone": "a"}}),
        json!({"tolerations": [{"key": "spot", "operator": "Exists"}]}),
    ] {
        assert_ne!(shape(&other), base, "{other}");
    }
}

#[test]
fn pods_of_a_group_share_its_workload() {
    let group = json!({"labels": {"lockkeeper.dev/pod-group-name": "g"}});
    let first = pod(&json!({"metadata": group}));
    let second = pod(&json!({"metadata": {"name": "p2", "uid": "u2", "labels": group["labels"]}}));
    let alone = pod(&json!({}));
    let workload = first.workload_name(2);
    assert_eq!(workload, second.workload_name(2));
    assert_ne!(workload, alone.workload_name(2));
    assert!(workload.name().starts_with("podgroup-g-"), "{workload}");
}

#[test]
fn group_is_read_from_its_workload() {
    let uid = group_uid(&ObjectKey::new("team", "g"));
    let workload = |labels: &Value| {
        let metadata = json!({"name": "w", "namespace": "team", "labels": labels});
        serde_json::from_value(json!({
            "apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Workload", "metadata": metadata,
            "spec": {"queueName": "q", "podSets": []},
        }))
        .unwrap()
    };
    let own =
        workload(&json!({"lockkeeper.dev/pod-group-name": "g", "lockkeeper.dev/job-uid": uid}));
    let (key, of) = group_of_workload(&own).unwrap();
    assert_eq!((key.name.key(), of), ("team/g", &*uid));
    assert!(group_of_workload(&workload(&json!({"lockkeeper.dev/job-uid": uid}))).is_none());
}

#[test]
fn templates_of_a_group_have_names_of_containers() {
    let spec = json!({"initContainers": [{"name": "a", "image": "b"}]});
    let text = template_text(&pod(&json!({"spec": spec})).pod_sets);
    let templates: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(templates[0]["spec"]["containers"][0]["name"], "container-1");
    assert_eq!(templates[0]["spec"]["initContainers"][0]["name"], "init-1");
    assert_eq!(
        templates[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"],
        "1"
    );
}
