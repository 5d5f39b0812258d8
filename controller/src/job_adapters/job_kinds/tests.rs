use super::*;
use crate::job_adapters::{PodPlacement, Resource, watched_kind};
use lockkeeper_api::JobKind;
use serde_json::json;
use std::collections::BTreeMap;

/// A kind whose controller creates a `Part` of the same name.
fn declared(group: &str, kind: &str) -> DeclaredKind {
    let declaration = json!({
        "metadata": {"name": format!("{}s.{group}", kind.to_lowercase())},
        "spec": {
            "version": "v1", "kind": kind,
            "podSets": [{"forEach": "spec.roles", "template": "template", "count": "item.replicas"}],
            "children": [{"group": "example.com", "kind": "Part", "names": "[self.metadata.name]"}],
            "podLabel": {"key": "example.com/run", "value": "Name"},
        },
    });
    let declaration: JobKind = serde_json::from_value(declaration).unwrap();
    DeclaredKind::compile(&declaration).unwrap()
}

fn kinds() -> JobKinds {
    let mut kinds = JobKinds::default();
    assert_eq!(kinds.declare(declared("example.com", "Run")), Ok(4));
    assert_eq!(kinds.declare(declared("example.com", "Part")), Ok(5));
    kinds
}

fn object(kind: &str, name: &str, owner: Option<&str>) -> Value {
    let owners = owner.map(|owner| {
        json!([{"apiVersion": "example.com/v1", "kind": "Run", "name": owner, "uid": "u", "controller": true}])
    });
    let template = json!({"spec": {"containers": [], "nodeSelector": {"zone": "a"}}});
    json!({
        "apiVersion": "example.com/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "n", "uid": "u", "ownerReferences": owners},
        "spec": {"suspend": true, "roles": [{"name": "Main", "replicas": 3, "template": template, "env": "kept"}]},
    })
}

#[test]
fn built_in_kinds_keep_their_indices_and_names() {
    let kinds = kinds();
    for index in 0..KINDS.len() {
        let name = kinds.get(index).unwrap().resource().kind;
        assert_eq!(kinds.name(index), name);
        assert_eq!(job_adapters::kind_name(index), name);
    }
    assert_eq!(
        (kinds.count(), kinds.name(4), kinds.name(5)),
        (6, "Run", "Part")
    );
    assert!(kinds.get(6).is_none());
    assert_eq!(watched_kind(4), 4);
}

#[test]
fn kind_is_declared_again_at_its_index_and_names_are_unique() {
    let mut kinds = kinds();
    assert_eq!(kinds.declare(declared("example.com", "Run")), Ok(4));
    assert_eq!(kinds.count(), 6);
    let taken = DeclareError::NameTaken("example.com/v1".to_owned());
    assert_eq!(kinds.declare(declared("other.com", "Run")), Err(taken));
    for built_in in ["Job", "JobSet", "Pod"] {
        let declared = declared("batch.example.com", built_in);
        assert_eq!(kinds.declare(declared), Err(DeclareError::BuiltIn));
    }
}

#[test]
fn declared_job_is_read_and_placed() {
    let kinds = kinds();
    let view = kinds.parse(4, object("Run", "a", None)).unwrap();
    assert!(view.is_suspended && view.is_quiescent && view.is_stopped());
    assert_eq!(
        (view.pod_sets[0].name.as_str(), view.pod_sets[0].count),
        ("main", 3)
    );
    let placed = [PodPlacement {
        node_selector: BTreeMap::from([("zone".to_owned(), "b".to_owned())]),
        ..PodPlacement::default()
    }];
    let adapter = kinds.get(4).unwrap();
    let patch = adapter
        .placement_patch(&view, view.template_source.text(), &placed)
        .unwrap();
    let item = &patch["roles"][0];
    assert_eq!(
        item["template"]["spec"]["nodeSelector"],
        json!({"zone": "b"})
    );
    assert_eq!(
        (&item["replicas"], &item["env"]),
        (&json!(3), &json!("kept"))
    );
    assert_eq!(adapter.suspend_patch(), json!({"suspend": true}));
    assert_eq!(adapter.start_patch(&view), json!({"suspend": false}));
    let selector = adapter.pod_selector(Some(&view.name), "u");
    assert_eq!(selector.as_deref(), Some("example.com/run=a"));
    assert_eq!(adapter.pod_selector(None, "u"), None);
}

#[test]
fn workload_of_a_declared_job_names_its_kind() {
    let kinds = kinds();
    let view = kinds.parse(4, object("Run", "a", None)).unwrap();
    let workload = view.workload_name(4);
    assert!(workload.name().starts_with("run-a-"), "{workload}");
    assert_eq!(kinds.kind_from_workload_name(workload.name()), 4);
    assert_eq!(
        kinds.job_name_from_workload(&workload, 4, "u"),
        Some(view.name)
    );
    assert_eq!(kinds.job_name_from_workload(&workload, 4, "other"), None);
    assert_eq!(kinds.kind_from_workload_name("jobset-a-0"), 1);
    let owned: Workload = serde_json::from_value(json!({
        "metadata": object("Run", "w", Some("a"))["metadata"], "spec": {"podSets": []},
    }))
    .unwrap();
    let (job, uid) = kinds.owner(&owned).unwrap();
    assert_eq!((job.kind, job.name.key(), uid), (4, "n/a", "u"));
    assert!(JobKinds::default().owner(&owned).is_none());
}

/// The name, the kind and the owner decide; a claim in `ownerReferences` alone exempts no job.
#[test]
fn declared_kind_covers_only_the_named_jobs() {
    let kinds = kinds();
    let parent = kinds.parse(4, object("Run", "a", None)).unwrap();
    let part = kinds.get(5).unwrap().resource();
    let other = Resource::new("example.com", "v1", "Other", "others");
    for (name, resource, expected) in [
        ("a", &part, true),
        ("b", &part, false),
        ("a", &other, false),
    ] {
        let child = kinds.parse(5, object("Part", name, Some("a"))).unwrap();
        assert_eq!(child.parent.as_ref().map(|(key, _)| key.kind), Some(4));
        let is_covered = kinds.get(4).unwrap().covers(&parent, resource, &child);
        assert_eq!(is_covered, expected, "{name} {}", resource.kind);
    }
}

#[test]
fn object_that_does_not_fit_is_an_error_with_the_field() {
    let kinds = kinds();
    let mut wrong = object("Run", "a", None);
    wrong["spec"]["roles"][0]["replicas"] = json!("three");
    let error = kinds.parse(4, wrong).unwrap_err().to_string();
    assert!(error.contains("spec.podSets[0].count"), "{error}");
}
