//! The effect of each field of a declaration.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use lockkeeper_api::JobKind;
use lockkeeper_job_kinds::{DeclaredJob, DeclaredKind, PodSetWrite};
use serde_json::{Value, json};

/// A declaration with one pod set; `change` is merged into its spec.
fn kind(change: &Value) -> DeclaredKind {
    DeclaredKind::compile(&declaration(change)).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn declaration(change: &Value) -> JobKind {
    let mut spec = json!({
        "version": "v1", "kind": "Run",
        "podSets": [{"name": "main", "template": "spec.template"}],
    });
    json_patch::merge(&mut spec, change);
    let declaration = json!({"metadata": {"name": "runs.example.com"}, "spec": spec});
    serde_json::from_value(declaration).unwrap()
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
fn count_field_is_read_and_written_with_a_minimum() {
    let each = json!({
        "forEach": "spec.roles", "template": "template", "countField": "scale.replicas", "minimum": "item.?least.orValue(0)",
    });
    let kind = pod_set(&each);
    let role = |name: &str, replicas: Value, least: i32| json!({"name": name, "scale": replicas, "least": least, "template": template()});
    let roles = json!([
        role("a", json!({"replicas": 4}), 2),
        role("b", json!(null), 0),
        role("c", json!({"replicas": 3}), 3),
    ]);
    let job = read(&kind, &json!({"spec": {"roles": roles}}));
    let found: Vec<_> = job
        .pod_sets
        .iter()
        .map(|it| (it.count, it.minimum))
        .collect();
    assert_eq!(found, [(4, Some(2)), (1, None), (3, None)]);
    let counts = [Some(2), None, None].map(|count| PodSetWrite {
        pod_spec: json!({}),
        count,
    });
    let patch = kind.placement_patch(&job.templates, &counts);
    let mut expected = roles;
    expected[0]["scale"]["replicas"] = json!(2);
    assert_eq!(patch, Some(json!({"roles": expected})));
    let single =
        pod_set(&json!({"name": "main", "template": "spec.template", "countField": "spec.n"}));
    let job = read(&single, &json!({"spec": {"n": 5}}));
    let write = PodSetWrite {
        pod_spec: json!({"nodeSelector": {"pool": "b"}}),
        count: Some(3),
    };
    let patch = single.placement_patch(&job.templates, &[write]);
    let expected = json!({"n": 3, "template": {"spec": {"nodeSelector": {"pool": "b"}}}});
    assert_eq!(patch, Some(expected));
    for n in [json!(-1), json!("3"), json!(1.5)] {
        let wrong = json!({"metadata": {"name": "a"}, "spec": {"n": n, "template": template()}});
        let error = single.read(&wrong).unwrap_err().to_string();
        assert!(
            error.contains("countField: spec.n must be an integer"),
            "{error}"
        );
    }
}

#[test]
fn priority_class_is_that_of_a_field() {
    let of_field = kind(&json!({"priorityClass": "self.spec.?priority.orValue('')"}));
    for (value, expected) in [
        (json!(null), None),
        (json!(""), None),
        (json!("high"), Some("high")),
    ] {
        let job = read(&of_field, &json!({"spec": {"priority": value}}));
        assert_eq!(job.priority_class.as_deref(), expected);
    }
    let wrong =
        json!({"metadata": {"name": "a"}, "spec": {"priority": "a b", "template": template()}});
    let error = of_field.read(&wrong).unwrap_err().to_string();
    assert!(
        error.contains("spec.priorityClass: must be the name"),
        "{error}"
    );
    assert_eq!(read(&kind(&json!({})), &json!({})).priority_class, None);
}

#[test]
fn suspension_resets_fields() {
    let kind = kind(&json!({"resetOnStop": [
        {"path": "spec.clusterName"}, {"path": "spec.run.phase", "value": "New"}, {"path": "spec.run.isStarted", "value": false},
    ]}));
    let expected =
        json!({"suspend": true, "clusterName": null, "run": {"phase": "New", "isStarted": false}});
    assert_eq!(kind.suspend_patch(), expected);
    assert_eq!(kind.start_patch(), json!({"suspend": false}));
    // A write of a field inside a value that is no object would replace the value.
    let wrong = json!({"metadata": {"name": "a"}, "spec": {"run": "x", "template": template()}});
    let error = kind.read(&wrong).unwrap_err().to_string();
    let expected = "spec.resetOnStop[1].path: the job has no object with spec.run.phase";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn written_fields_may_not_overlap() {
    for (change, field, problem) in [
        (
            json!({"resetOnStop": [{"path": "spec.suspend"}]}),
            "spec.resetOnStop[0].path",
            "overlaps with spec.suspend",
        ),
        (
            json!({"resetOnStop": [{"path": "spec.template.spec"}]}),
            "spec.resetOnStop[0].path",
            "overlaps with spec.template",
        ),
        (
            json!({"resetOnStop": [{"path": "spec.a"}, {"path": "spec.a.b"}]}),
            "spec.resetOnStop[1].path",
            "overlaps with spec.a",
        ),
        (
            json!({"resetOnStop": [{"path": "status.phase"}]}),
            "spec.resetOnStop[0].path",
            "must be below spec",
        ),
        (
            json!({"resetOnStop": [{"path": "spec.a", "value": 3}]}),
            "spec.resetOnStop[0].value",
            "must be true, false or a text",
        ),
        (
            json!({"podSets": [{"name": "m", "template": "spec.template", "countField": "spec.template.n"}]}),
            "spec.podSets[0].countField",
            "may not be a part of the pod template",
        ),
        (
            json!({"podSets": [{"name": "m", "template": "spec.template", "countField": "spec.n", "count": "3"}]}),
            "spec.podSets[0].countField",
            "may not be set besides count",
        ),
        (
            json!({"podSets": [{"name": "m", "template": "spec.template", "minimum": "3"}]}),
            "spec.podSets[0].minimum",
            "needs countField",
        ),
    ] {
        let errors = DeclaredKind::compile(&declaration(&change)).unwrap_err();
        let found: Vec<_> = errors
            .iter()
            .map(|it| (it.field.to_string(), &it.problem))
            .collect();
        let is_found = found
            .iter()
            .any(|it| it.0 == field && it.1.contains(problem));
        assert!(is_found, "{change}: {found:?}");
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
    let write = PodSetWrite {
        pod_spec: placed.clone(),
        count: None,
    };
    let patch = kind.placement_patch(&job.templates, &[write]);
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
