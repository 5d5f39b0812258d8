#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use super::super::evaluation::{OPERATOR, denials_by, user};
use super::*;
use lockkeeper_api::JobKind;
use lockkeeper_crd_schema::admission_policy::{
    AdmissionRequest, MergeTypes, MutationKind, PolicySet, Resource,
};
use serde_json::json;

/// A declared kind with this field that suspends its jobs.
fn kind(suspend: &Value) -> DeclaredKind {
    let declaration = json!({
        "metadata": {"name": "runs.example.com"},
        "spec": {
            "version": "v1", "kind": "Run", "suspend": suspend,
            "podSets": [{"name": "main", "template": "spec.template"}],
        },
    });
    let declaration: JobKind = serde_json::from_value(declaration).unwrap();
    DeclaredKind::compile(&declaration).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Fields of different depth, with names that are no identifiers, and with texts.
fn suspend_fields() -> [Value; 4] {
    [
        json!({}),
        json!({"path": "spec.runPolicy.suspend"}),
        json!({"path": "spec['a.b/c~d'].for['it\"s'].x", "suspendedValue": "Off", "startedValue": "O'n"}),
        json!({"path": "spec.isStarted", "suspendedValue": false, "startedValue": true}),
    ]
}

fn policies(kind: &DeclaredKind) -> PolicySet {
    let mut out = PolicySet::default();
    let ((suspend, suspend_binding), (running, running_binding)) =
        (suspend_policy(kind), running_guard(kind));
    let (resume, resume_binding) = resume_guard(kind, "request.userInfo.username != 'lockkeeper'");
    for object in [
        serde_json::to_value(suspend),
        serde_json::to_value(suspend_binding),
        serde_json::to_value(running),
        serde_json::to_value(running_binding),
        serde_json::to_value(resume),
        serde_json::to_value(resume_binding),
    ] {
        out.add(&object.unwrap());
    }
    out
}

fn resource() -> Resource {
    Resource::new("example.com", "v1", "Run", "runs")
}

fn run(labels: &Value, spec: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Run",
        "metadata": {"name": "a", "namespace": "team", "labels": labels}, "spec": spec,
    })
}

/// The object after the mutating policies.
fn mutated(policies: &PolicySet, object: &Value) -> Value {
    mutated_for(policies, object, "tenant")
}

/// The same for a request by this user.
fn mutated_for(policies: &PolicySet, object: &Value, name: &str) -> Value {
    let resource = resource();
    let user = user(name);
    let request = AdmissionRequest {
        user: Some(&user),
        ..AdmissionRequest::create(object, &resource, Some("team"))
    };
    let kind = MutationKind {
        types: MergeTypes::Unknown,
        set_defaults: &|it| it,
    };
    let result = policies.mutate(&request, kind);
    assert_eq!(result.decisions, []);
    result.object.unwrap_or_else(|| object.clone())
}

/// The messages of the validating policies about an update by lockkeeper's controller.
fn messages(policies: &PolicySet, old: &Value, new: &Value) -> Vec<String> {
    messages_for(policies, old, new, "lockkeeper")
}

/// The same for an update by this user.
fn messages_for(policies: &PolicySet, old: &Value, new: &Value, name: &str) -> Vec<String> {
    denials_by(policies, &resource(), Some(old), new, name)
}

#[test]
fn queued_job_is_created_suspended() {
    let queued = json!({"lockkeeper.dev/queue-name": "main"});
    for field in suspend_fields() {
        let kind = kind(&field);
        let policies = policies(&kind);
        let (path, suspended, started) = kind.suspend_field();
        let with = |value: &Value| path.wrap(value.clone())["spec"].clone();
        // An empty queue name counts, as for Jobs.
        let empty = run(&json!({"lockkeeper.dev/queue-name": ""}), &with(started));
        assert!(kind.is_suspended(&mutated(&policies, &empty)), "{field}");
        for spec in [
            json!({}),
            json!({"other": 1}),
            with(started),
            with(suspended),
        ] {
            let object = run(&queued, &spec);
            let after = mutated(&policies, &object);
            assert!(kind.is_suspended(&after), "{field} {spec}: {after}");
            let mut expected = object;
            json_patch::merge(&mut expected, &path.wrap(suspended.clone()));
            assert_eq!(after, expected);
        }
        for labels in [json!({}), Value::Null] {
            let object = run(&labels, &with(started));
            assert_eq!(mutated(&policies, &object), object, "{field} {labels}");
        }
    }
}

#[test]
fn queue_priority_and_owner_of_a_running_job_are_kept() {
    let labels =
        json!({"lockkeeper.dev/queue-name": "main", "lockkeeper.dev/priority-class": "low"});
    for field in suspend_fields() {
        let kind = kind(&field);
        let policies = policies(&kind);
        let (path, suspended, started) = kind.suspend_field();
        let with = |value: &Value| run(&labels, &path.wrap(value.clone())["spec"]);
        let (off, on) = (with(suspended), with(started));
        assert_eq!(messages(&policies, &off, &on), Vec::<String>::new());
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]);
        for (change, expected) in [
            (
                json!({"labels": {"lockkeeper.dev/queue-name": null}}),
                "metadata.labels['lockkeeper.dev/queue-name']: field is immutable",
            ),
            (
                json!({"labels": {"lockkeeper.dev/queue-name": "other"}}),
                "metadata.labels['lockkeeper.dev/queue-name']: field is immutable",
            ),
            (
                json!({"labels": {"lockkeeper.dev/priority-class": "high"}}),
                "metadata.labels['lockkeeper.dev/priority-class']: field is immutable",
            ),
            (
                json!({"labels": {"lockkeeper.dev/preemption-priority-class": "high"}}),
                "metadata.labels['lockkeeper.dev/preemption-priority-class']: field is immutable",
            ),
            (
                json!({"ownerReferences": owner}),
                "metadata.ownerReferences: the controller of a job must not change",
            ),
        ] {
            for (old, new, is_rejected) in [
                (&on, &on, true),
                (&off, &on, true),
                (&on, &off, true),
                (&off, &off, false),
            ] {
                let mut new = new.clone();
                json_patch::merge(&mut new, &json!({"metadata": change}));
                let found = messages(&policies, old, &new);
                let is_expected = |it: &String| it.contains(expected);
                assert_eq!(
                    found.iter().any(is_expected),
                    is_rejected,
                    "{field} {change}: {found:?}"
                );
                assert_eq!(found.len(), usize::from(is_rejected), "{found:?}");
            }
        }
        let other = json!({"metadata": {"labels": {"team": "a"}}});
        let mut labelled = on.clone();
        json_patch::merge(&mut labelled, &other);
        assert_eq!(messages(&policies, &on, &labelled), Vec::<String>::new());
    }
}

/// The annotation has the uid of the job: a copied manifest does not count, and a queue is not exchanged.
#[test]
fn adoption_adds_the_queue_of_a_running_job() {
    let kind = kind(&json!({}));
    let policies = policies(&kind);
    let running = |labels: &Value, uid: &str| {
        let mut object = run(labels, &json!({"suspend": false}));
        object["metadata"]["uid"] = json!("u");
        object["metadata"]["annotations"] = json!({"lockkeeper.dev/adoption": uid});
        object
    };
    let (free, main) = (json!({}), json!({"lockkeeper.dev/queue-name": "main"}));
    let other = json!({"lockkeeper.dev/queue-name": "other"});
    let class =
        json!({"lockkeeper.dev/queue-name": "main", "lockkeeper.dev/priority-class": "high"});
    for (before, after, uid, rejections) in [
        (&free, &main, "u", 0),
        (&free, &main, "v", 1),
        (&other, &main, "u", 1),
        (&main, &free, "u", 1),
        (&free, &class, "u", 1),
    ] {
        let found = messages(&policies, &running(before, uid), &running(after, uid));
        assert_eq!(found.len(), rejections, "{before} {after} {uid}: {found:?}");
    }
}

#[test]
fn without_mutating_policies_a_new_queued_job_must_be_suspended() {
    let queued = json!({"lockkeeper.dev/queue-name": "main"});
    for field in suspend_fields() {
        let kind = kind(&field);
        let (path, suspended, started) = kind.suspend_field();
        let (policy, binding) = suspended_guard(&kind);
        let mut policies = PolicySet::default();
        for object in [serde_json::to_value(policy), serde_json::to_value(binding)] {
            policies.add(&object.unwrap());
        }
        let with = |value: &Value| path.wrap(value.clone())["spec"].clone();
        for (labels, spec, is_rejected) in [
            (&queued, with(suspended), false),
            (&queued, with(started), true),
            (&queued, json!({}), true),
            (&json!({}), with(started), false),
        ] {
            let object = run(labels, &spec);
            let denied = denials(&policies, &object, "tenant");
            assert_eq!(
                denied.len(),
                usize::from(is_rejected),
                "{object}: {denied:?}"
            );
            let expected = format!("{path}: must be ");
            assert!(
                denied.iter().all(|it| it.starts_with(&expected)),
                "{denied:?}"
            );
        }
        // An object without a spec has no suspended job either.
        let mut bare = run(&queued, &json!({}));
        bare.as_object_mut().unwrap().remove("spec");
        assert_eq!(denials(&policies, &bare, "tenant").len(), 1, "{field}");
        let child = child_of_a_controller(&with(started));
        assert_eq!(denials(&policies, &child, "tenant").len(), 1, "{field}");
        assert_eq!(denials(&policies, &child, OPERATOR), Vec::<String>::new());
    }
}

/// The messages of the validating policies about an object that a user creates.
fn denials(policies: &PolicySet, object: &Value, name: &str) -> Vec<String> {
    denials_by(policies, &resource(), None, object, name)
}

/// A job with the queue label of its parent, as `KubeRay` creates a `RayCluster`.
fn child_of_a_controller(spec: &Value) -> Value {
    let mut child = run(&json!({"lockkeeper.dev/queue-name": "main"}), spec);
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1", "kind": "Parent", "name": "p", "uid": "u", "controller": true,
    }]);
    child
}

#[test]
fn job_of_a_controller_is_not_suspended() {
    for field in suspend_fields() {
        let kind = kind(&field);
        let policies = policies(&kind);
        let (path, _, started) = kind.suspend_field();
        let child = child_of_a_controller(&path.wrap(started.clone())["spec"]);
        assert_eq!(mutated_for(&policies, &child, OPERATOR), child, "{field}");
        // A claimed owner exempts nothing, nor does an account without one.
        assert!(kind.is_suspended(&mutated(&policies, &child)), "{field}");
        let mut free = child.clone();
        free["metadata"]["ownerReferences"][0]["controller"] = json!(false);
        let after = mutated_for(&policies, &free, OPERATOR);
        assert!(kind.is_suspended(&after), "{field}");
    }
}

#[test]
fn only_controllers_resume_a_queued_job() {
    let own_account = "system:serviceaccount:team:default";
    for field in suspend_fields() {
        let kind = kind(&field);
        let policies = policies(&kind);
        let (path, suspended, started) = kind.suspend_field();
        let with = |value: &Value| path.wrap(value.clone())["spec"].clone();
        let queued = json!({"lockkeeper.dev/queue-name": "main"});
        let waits = run(&queued, &with(suspended));
        for starts in [
            run(&queued, &with(started)),
            run(&queued, &json!({})),
            // The label is removed in the same update: it is immutable then, too.
            run(&json!({}), &with(started)),
        ] {
            for name in ["tenant", own_account] {
                let all = messages_for(&policies, &waits, &starts, name);
                let message = format!("{path}: only the controller may resume a job with a queue");
                assert!(
                    all.iter().any(|it| it.starts_with(&message)),
                    "{field} {name}: {all:?}"
                );
            }
        }
        let starts = run(&queued, &with(started));
        for name in ["lockkeeper", OPERATOR] {
            assert_eq!(
                messages_for(&policies, &waits, &starts, name),
                [""; 0],
                "{field} {name}"
            );
        }
        // It may be suspended by its user, and a job without a queue is started by its user.
        assert_eq!(
            messages_for(&policies, &starts, &waits, "tenant"),
            [""; 0],
            "{field}"
        );
        let free = [&with(suspended), &with(started)].map(|spec| run(&json!({}), spec));
        assert_eq!(
            messages_for(&policies, &free[0], &free[1], "tenant"),
            [""; 0],
            "{field}"
        );
    }
}
