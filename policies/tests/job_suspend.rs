//! Only new jobs with the queue label are suspended.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use k8s_openapi::api::batch::v1::Job;
use lockkeeper_api::JobSet;
use lockkeeper_policies::index::Index;
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::{Context, Operation};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::{Value, json};

/// The JSON pointers of the defaulted fields, with the values.
fn defaulted_fields<T: ValidatedKind>(object: &Value, is_new: bool) -> Vec<(String, Value)> {
    let context = Context {
        cluster: &Index::default(),
        settings: &Settings::default(),
    };
    let object = T::deserialize(object).unwrap();
    let old = T::deserialize(&json!({"metadata": {}, "spec": {"template": {}}})).unwrap();
    let defaults = T::defaults(&object, (!is_new).then_some(&old), &context);
    let items = defaults.items().iter();
    items
        .map(|it| (it.pointer.clone(), it.value.clone()))
        .collect()
}

/// Checks a Job and a JobSet.
#[track_caller]
fn check(object: &Value, is_new: bool, is_suspended: bool) {
    let expected = if is_suspended {
        vec![("/spec/suspend".to_owned(), json!(true))]
    } else {
        Vec::new()
    };
    assert_eq!(
        defaulted_fields::<Job>(object, is_new),
        expected,
        "{object}"
    );
    assert_eq!(
        defaulted_fields::<JobSet>(object, is_new),
        expected,
        "{object}"
    );
}

fn queued(spec: &Value) -> Value {
    json!({"metadata": {"labels": {"lockkeeper.dev/queue-name": "main"}}, "spec": spec})
}

fn owned(api_version: &str, kind: &str, controller: &Value) -> Value {
    let mut object = queued(&json!({"template": {}}));
    object["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"},
        {"apiVersion": api_version, "kind": kind, "name": "b", "uid": "2", "controller": controller},
    ]);
    object
}

#[test]
fn job_with_queue_label_is_suspended() {
    for suspend in [json!(null), json!(false)] {
        check(
            &queued(&json!({"template": {}, "suspend": suspend})),
            true,
            true,
        );
    }
    check(&queued(&json!({"template": {}})), true, true);
    check(
        &queued(&json!({"template": {}, "suspend": true})),
        true,
        false,
    );
    let mut unnamed = queued(&json!({"template": {}}));
    unnamed["metadata"]["labels"] = json!({"lockkeeper.dev/queue-name": ""});
    check(&unnamed, true, true);
}

#[test]
fn job_without_queue_label_is_unchanged() {
    let spec = json!({"template": {}});
    check(&json!({"metadata": {}, "spec": spec}), true, false);
    for labels in [json!({}), json!({"kueue.x-k8s.io/queue-name": "main"})] {
        check(
            &json!({"metadata": {"labels": labels}, "spec": spec}),
            true,
            false,
        );
    }
}

/// Updates are not defaulted: the controller and users start and stop jobs.
#[test]
fn update_never_suspends_a_job() {
    for suspend in [json!(null), json!(false), json!(true)] {
        check(
            &queued(&json!({"template": {}, "suspend": suspend})),
            false,
            false,
        );
    }
}

/// A patch below a missing `spec` could not be applied.
#[test]
fn object_without_spec_is_unchanged() {
    check(&queued(&Value::Null), true, false);
    let mut object = queued(&Value::Null);
    object.as_object_mut().unwrap().remove("spec");
    check(&object, true, false);
}

/// An owner reference is a claim of the user who writes it.
#[test]
fn job_with_any_owner_is_suspended() {
    for (api_version, kind, controller) in [
        ("jobset.x-k8s.io/v1alpha2", "JobSet", json!(true)),
        ("jobset.x-k8s.io/v1", "JobSet", json!(true)),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", json!(null)),
        ("batch/v1", "CronJob", json!(true)),
        ("batch/v1", "Job", json!(true)),
    ] {
        check(&owned(api_version, kind, &controller), true, true);
    }
}

#[test]
fn jobs_are_registered_by_queue_label() {
    let registrations = registry::known_registrations();
    for kind in ["Job", "JobSet"] {
        let found = registrations.iter().find(|it| it.kind == kind).unwrap();
        assert_eq!(found.selected_by, ["lockkeeper.dev/queue-name"]);
        assert_eq!(found.defaulted_on, [Operation::Create].into());
        let changing = [Operation::Create, Operation::Update];
        assert_eq!(found.validated_on, changing.into());
        assert!(found.namespaced && !found.own);
    }
}
