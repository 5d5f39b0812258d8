//! What mutating policies make of a Deployment.

use crate::admission_policy::{
    AdmissionRequest, MergeTypes, Missing, MutationKind, Outcome, PolicySet, Resource,
};
use crate::builtin::BuiltInKind;
use serde_json::{Value, json};

/// A policy of a name with mutations, and its binding.
fn add_policy(set: &mut PolicySet, name: &str, reinvocation: &str, mutations: &Value) {
    let version = "admissionregistration.k8s.io/v1";
    set.add(&json!({
        "apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
            }]},
            "mutations": mutations,
            "reinvocationPolicy": reinvocation,
        },
    }));
    set.add(&json!({
        "apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name},
    }));
}

fn patch(expression: &str) -> Value {
    json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}])
}

fn apply(expression: &str) -> Value {
    json!([{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}])
}

/// The object after a set, and the outcomes.
fn mutated(set: &PolicySet, types: MergeTypes<'_>) -> (Option<Value>, Vec<Outcome>) {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "a"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}},
    });
    let resource = Resource::new("apps", "v1", "Deployment", "deployments");
    let request = AdmissionRequest::create(&object, &resource, Some("a"));
    let kind = MutationKind {
        types,
        set_defaults: &|mut object| {
            object["metadata"]["annotations"] = json!({"defaults": "set"});
            object
        },
    };
    let mutated = set.mutate(&request, kind);
    let outcomes = mutated.decisions.into_iter().map(|it| it.outcome);
    (mutated.object, outcomes.collect())
}

fn deployment() -> MergeTypes<'static> {
    MergeTypes::BuiltIn(BuiltInKind::find("apps/v1", "Deployment").unwrap())
}

#[test]
fn mutations_run_in_the_order_of_names() {
    let mut set = PolicySet::default();
    let add = |set: &mut PolicySet, name: &str, reinvocation: &str, sign: &str| {
        let expression = format!(
            "[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'order': object.metadata.?labels.?order.orValue('') + '{sign}'}}}}]"
        );
        add_policy(set, name, reinvocation, &patch(&expression));
    };
    add(&mut set, "b", "Never", "b");
    add(&mut set, "a", "IfNeeded", "a");
    let (object, outcomes) = mutated(&set, deployment());
    assert_eq!(outcomes, []);
    let object = object.unwrap();
    // The first policy runs again, because the object has changed.
    assert_eq!(object["metadata"]["labels"]["order"], "aba");
    assert_eq!(object["metadata"]["annotations"]["defaults"], "set");
}

#[test]
fn partial_objects_and_patches_change_the_object() {
    for (mutations, pointer, expected) in [
        (
            apply("Object{spec: Object.spec{replicas: object.spec.replicas + 1}}"),
            "/spec/replicas",
            json!(3),
        ),
        (
            apply(
                "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'b', image: 'b'}]}}}}",
            ),
            "/spec/template/spec/containers/1/name",
            json!("b"),
        ),
        (
            patch("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 9}]"),
            "/spec/replicas",
            json!(9),
        ),
        (
            patch("[JSONPatch{op: 'remove', path: '/spec/template'}]"),
            "/spec/template",
            Value::Null,
        ),
    ] {
        let mut set = PolicySet::default();
        add_policy(&mut set, "a", "Never", &mutations);
        let (object, outcomes) = mutated(&set, deployment());
        assert_eq!(outcomes, [], "{mutations}");
        let object = object.unwrap();
        let found = object.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{mutations}");
    }
}

#[test]
fn errors_deny_and_unknown_values_are_undecided() {
    let denied = |start: &str, outcome: &Outcome| match outcome {
        Outcome::Denied { message, .. } => message.starts_with(start),
        Outcome::Undecided(missing) => missing.to_string() == start,
        Outcome::Unusable(reason) => reason.starts_with(start),
    };
    let no_change = patch("[JSONPatch{op: 'test', path: '/spec/replicas', value: 1}]");
    for (mutations, types, expected) in [
        (no_change, deployment(), None),
        (
            patch("[JSONPatch{op: 'remove', path: '/spec/none'}]"),
            deployment(),
            Some("JSON Patch: "),
        ),
        (
            patch("[JSONPatch{op: 'add', path: '/spec/replicas', value: object.none}]"),
            deployment(),
            Some("expression '"),
        ),
        (
            apply("Object{spec: Object.other{replicas: 1}}"),
            deployment(),
            Some("type mismatch: "),
        ),
        (
            apply("Object{spec: Object.spec{colour: 'red'}}"),
            deployment(),
            Some("error applying patch: "),
        ),
        (
            apply("Object{metadata: Object.metadata{name: request.userInfo.username}}"),
            deployment(),
            Some("the user of the request"),
        ),
        (
            apply("Object{}"),
            MergeTypes::Unknown,
            Some("the schema of the kind"),
        ),
        (
            apply("[JSONPatch{op: 'test'}]"),
            deployment(),
            Some("spec.mutations[0].applyConfiguration.expression: must evaluate to Object"),
        ),
    ] {
        let mut set = PolicySet::default();
        add_policy(&mut set, "a", "Never", &mutations);
        let (object, outcomes) = mutated(&set, types);
        assert_eq!(object, None, "{mutations}");
        match (expected, &*outcomes) {
            (None, []) => {}
            (Some(start), [outcome]) if denied(start, outcome) => {}
            _ => panic!("{mutations}: {outcomes:?}"),
        }
    }
    assert_eq!(Missing::Schema.to_string(), "the schema of the kind");
}
