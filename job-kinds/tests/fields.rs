//! The effect of each field of a declaration.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::{DeclaredJob, DeclaredKind};
use serde_json::{Value, json};

/// A declaration with one pod set; `change` is merged into its spec.
fn kind(change: &Value) -> DeclaredKind {
    let mut spec = json!({
        "version": "v1", "kind": "Run",
        "podSets": [{"name": "main", "template": "spec.template"}],
    });
    json_patch::merge(&mut spec, change);
    let declaration = json!({"metadata": {"name": "runs.example.com"}, "spec": spec});
    let declaration: JobKind = serde_json::from_value(declaration).unwrap();
    DeclaredKind::compile(&declaration).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}})
}

/// A job with the template; `change` is merged into it.
fn read(kind: &DeclaredKind, change: &Value) -> DeclaredJob {
    let mut job =
        json!({"metadata": {"name": "a"}, "spec": {"suspend": true, "template": template()}});
    json_patch::merge(&mut job, change);
    kind.read(&job).unwrap_or_else(|error| panic!("{error}"))
}

fn pod_set(change: &Value) -> DeclaredKind {
    kind(&json!({"podSets": [change]}))
}

fn conditions(all: &[(&str, &str)]) -> Value {
    let all = all
        .iter()
        .map(|(kind, status)| json!({"type": kind, "status": status, "message": kind}));
    json!({"status": {"conditions": all.collect::<Vec<_>>()}})
}

#[test]
fn suspend_names_the_field_and_its_values() {
    let default = kind(&json!({}));
    assert!(read(&default, &json!({})).is_suspended);
    assert!(!read(&default, &json!({"spec": {"suspend": null}})).is_suspended);
    assert_eq!(default.suspend_patch(), json!({"suspend": true}));
    let text = kind(
        &json!({"suspend": {"path": "spec.run.state", "suspendedValue": "Off", "startedValue": "On"}}),
    );
    assert!(read(&text, &json!({"spec": {"run": {"state": "Off"}}})).is_suspended);
    assert!(!read(&text, &json!({"spec": {"run": {"state": "On"}}})).is_suspended);
    assert_eq!(text.suspend_patch(), json!({"run": {"state": "Off"}}));
    assert_eq!(text.start_patch(), json!({"run": {"state": "On"}}));
}

#[test]
fn managed_by_names_the_controller() {
    let kind =
        kind(&json!({"managedBy": {"path": "spec.managedBy", "controller": "example.com/own"}}));
    for (value, expected) in [
        (json!(null), None),
        (json!("example.com/own"), None),
        (json!("other"), Some("other")),
    ] {
        let job = read(&kind, &json!({"spec": {"managedBy": value}}));
        assert_eq!(job.foreign_manager.as_deref(), expected);
    }
}

#[test]
fn pod_sets_are_items_of_lists_and_maps() {
    let of = |pods: Value, spec: Value| {
        let job = read(&pod_set(&pods), &json!({"spec": spec}));
        let sets = job.pod_sets.into_iter();
        sets.map(|it| (it.name, it.count)).collect::<Vec<_>>()
    };
    let owned = |all: &[(&str, i32)]| {
        let all = all.iter().map(|(name, count)| ((*name).to_owned(), *count));
        all.collect::<Vec<_>>()
    };
    let item = |name: &str, n: i32| json!({"name": name, "id": format!("x-{name}"), "n": n, "template": template()});
    let list = json!({"roles": [item("B", 2), item("a", 3)]});
    let map = json!({"roles": {"Z": item("b", 2), "Y": item("a", 0)}});
    let each = |change: Value| {
        let mut pods = json!({"forEach": "spec.roles", "template": "template"});
        json_patch::merge(&mut pods, &change);
        pods
    };
    assert_eq!(
        of(each(json!({})), list.clone()),
        owned(&[("b", 1), ("a", 1)])
    );
    assert_eq!(
        of(each(json!({"count": "item.n"})), map.clone()),
        owned(&[("y", 0), ("z", 2)])
    );
    let named =
        each(json!({"nameExpression": "item.id + '-' + string(key)", "count": "item.n + 1"}));
    assert_eq!(
        of(named, list.clone()),
        owned(&[("x-b-0", 3), ("x-a-1", 4)])
    );
    assert_eq!(
        of(each(json!({"condition": "item.n > 2"})), list),
        owned(&[("a", 1)])
    );
}

#[test]
fn reclaimable_pods_are_at_most_all() {
    let kind = pod_set(&json!({
        "name": "main", "template": "spec.template", "count": "4", "reclaimable": "self.?status.?done.orValue(0)",
    }));
    for (done, expected) in [(0, 0), (3, 3), (9, 4)] {
        let job = read(&kind, &json!({"status": {"done": done}}));
        assert_eq!(
            job.pod_sets.first().map(|it| (it.count, it.reclaimable)),
            Some((4, expected))
        );
    }
}

#[test]
fn pod_fields_and_requests_replace_a_template() {
    let kind = pod_set(&json!({
        "name": "main", "podFields": "spec.driver",
        "requests": {"cpu": "string(self.spec.driver.cores)", "memory": "'2Gi'"},
    }));
    let driver =
        json!({"cores": 2, "nodeSelector": {"zone": "a"}, "tolerations": [{"operator": "Exists"}]});
    let job = read(&kind, &json!({"spec": {"driver": driver}}));
    let pod = &job.pod_sets.first().unwrap().template["spec"];
    let requests = json!({"cpu": "2", "memory": "2Gi"});
    assert_eq!(pod["containers"][0]["resources"]["requests"], requests);
    assert_eq!(pod["nodeSelector"], json!({"zone": "a"}));
    let placed = json!({"nodeSelector": {"pool": "b"}});
    let patch = kind.placement_patch(&job.templates, std::slice::from_ref(&placed));
    assert_eq!(patch, Some(json!({"driver": placed})));
    let wrong = json!({"metadata": {"name": "a"}, "spec": {"driver": {"cores": "many"}}});
    let error = kind.read(&wrong).unwrap_err().to_string();
    assert!(
        error.contains("requests[cpu]") && error.contains("\"many\" is no quantity"),
        "{error}"
    );
}

#[test]
fn status_is_read_from_the_usual_conditions() {
    let default = kind(&json!({}));
    let state = |change: Value| {
        let job = read(&default, &change);
        (
            job.is_started,
            job.is_stopped,
            job.is_ready,
            job.result.map(|it| (it.is_success, it.message)),
        )
    };
    let ended = |is_success, message: &str| Some((is_success, message.to_owned()));
    for (all, expected) in [
        (&[][..], (true, true, false, None)),
        (&[("Suspended", "True")], (false, true, false, None)),
        (&[("Suspended", "False")], (true, false, false, None)),
        (&[("Running", "True")], (true, false, true, None)),
        (
            &[("Ready", "True"), ("Suspended", "True")],
            (false, false, true, None),
        ),
        (
            &[("Complete", "True")],
            (true, true, false, ended(true, "Complete")),
        ),
        (
            &[("Completed", "True")],
            (true, true, false, ended(true, "Completed")),
        ),
        (
            &[("Succeeded", "True")],
            (true, true, false, ended(true, "Succeeded")),
        ),
        (
            &[("Failed", "True")],
            (true, true, false, ended(false, "Failed")),
        ),
        (&[("Failed", "False")], (true, true, false, None)),
    ] {
        assert_eq!(state(conditions(all)), expected, "{all:?}");
    }
    assert_eq!(
        state(json!({})),
        (true, true, false, None),
        "without a status"
    );
}

#[test]
fn status_expressions_replace_the_conditions() {
    let phase = |phase: &str| format!("self.?status.?phase.orValue('') == '{phase}'");
    let kind = kind(&json!({"status": {
        "succeeded": phase("Done"), "failed": phase("Broken"), "message": "self.status.why", "ready": phase("Up"),
        "stopped": phase("Off"), "started": phase("Begun"),
    }}));
    let state = |phase: &str| {
        let job = read(
            &kind,
            &json!({"status": {"phase": phase, "why": "because"}}),
        );
        let result = job
            .result
            .map(|it| format!("{} {}", it.is_success, it.message));
        (job.is_started, job.is_stopped, job.is_ready, result)
    };
    assert_eq!(state("Begun"), (true, false, false, None));
    assert_eq!(state("Off"), (false, true, false, None));
    assert_eq!(state("Up"), (false, false, true, None));
    assert_eq!(
        state("Done"),
        (false, false, false, Some("true because".to_owned()))
    );
    assert_eq!(
        state("Broken"),
        (false, false, false, Some("false because".to_owned()))
    );
}

#[test]
fn children_are_named_by_an_expression() {
    let kind = kind(&json!({"children": [
        {"group": "a.com", "kind": "A", "names": "[self.metadata.name + '-a', '']"},
        {"group": "b.com", "kind": "B", "names": "self.?status.?parts.orValue([])"},
    ]}));
    let job = read(&kind, &json!({"status": {"parts": ["x", "y"]}}));
    let expected = [(0, "a-a"), (1, "x"), (1, "y")].map(|(at, name)| (at, name.to_owned()));
    assert_eq!(job.children, expected);
    let wrong = json!({"metadata": {"name": "a"}, "spec": {"template": template()}, "status": {"parts": "x"}});
    let error = kind.read(&wrong).unwrap_err().to_string();
    assert!(error.contains("spec.children[1].names"), "{error}");
}

#[test]
fn job_that_does_not_fit_names_the_field() {
    let two = json!({"podSets": [
        {"name": "main", "template": "spec.template"}, {"name": "main", "template": "spec.template"},
    ]});
    for (change, job, expected) in [
        (
            json!({}),
            json!({"template": null}),
            "spec.podSets: the job has none",
        ),
        (
            json!({}),
            json!({"template": "x"}),
            "spec.podSets[0].template: spec.template is no object",
        ),
        (two, json!({}), "spec.podSets[1].name: two pod sets"),
        (
            json!({"suspend": {"path": "spec.template.spec.containers.suspend"}}),
            json!({}),
            "spec.suspend.path",
        ),
        (
            json!({"status": {"ready": "1 + 1"}}),
            json!({}),
            "spec.status.ready: must be true or false",
        ),
        (
            json!({"status": {"failed": "self.spec.none.field"}}),
            json!({}),
            "spec.status.failed: no such key: none",
        ),
    ] {
        let mut object = json!({"metadata": {"name": "a"}, "spec": {"template": template()}});
        json_patch::merge(&mut object["spec"], &job);
        let error = kind(&change).read(&object).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
