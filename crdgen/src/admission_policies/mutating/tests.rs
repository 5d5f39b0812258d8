//! The policies set the same defaults as the webhook. The patches are evaluated as maps: kube-cel has no type for them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use crate::definitions::plain_definitions;
use kube_cel::KubeCelExt;
use kube_cel::cel::{Context as Cel, Program, Value as CelValue};
use lockkeeper_api::{ClusterQueue, ResourceFlavor, Workload};
use lockkeeper_policies::index::{Index, IndexedKind};
use lockkeeper_policies::registry;
use lockkeeper_policies::rule::Context;
use lockkeeper_policies::schema::StructuralSchema;
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::{Map, Value, json};

/// The schema of a kind of lockkeeper's.
fn schema(kind: &str) -> StructuralSchema {
    let definitions = plain_definitions();
    let definition = definitions.iter().find(|it| it.spec.names.kind == kind);
    let versions = &serde_json::to_value(definition.unwrap()).unwrap()["spec"]["versions"];
    StructuralSchema::new(&versions[0]["schema"]["openAPIV3Schema"]).unwrap()
}

/// The fields that a patch adds to an object.
fn added(expression: &str, object: &Value, old: Option<&Value>) -> Vec<(String, Value)> {
    let text = expression.replace("JSONPatch{op: 'add', path:", "{'path':");
    let text = text.replace(", value: ", ", 'value': ");
    let program = Program::compile(&text).expect(&text);
    let mut context = Cel::default().with_all();
    context.add_variable("object", object).unwrap();
    context.add_variable("oldObject", old).unwrap();
    let output = program.execute(&context).expect(&text);
    let Value::Array(items) = plain(&output) else {
        return Vec::new();
    };
    let each = items.into_iter().map(|operation| {
        let path = operation["path"].as_str().unwrap().to_owned();
        (path, operation["value"].clone())
    });
    each.collect()
}

fn plain(result: &CelValue) -> Value {
    match result {
        CelValue::String(text) => Value::from(text.as_str()),
        CelValue::List(items) => items.iter().map(plain).collect(),
        CelValue::Map(map) => {
            let fields = map.map.iter();
            fields
                .map(|(key, value)| (key.to_string(), plain(value)))
                .collect()
        }
        other => unreachable!("{other:?} is in no patch"),
    }
}

/// Adds a value as RFC 6902 does: the parent must exist.
fn add_to(object: &mut Value, path: &str, value: Value) {
    let (above, name) = path.rsplit_once('/').unwrap();
    match object.pointer_mut(above).expect(path) {
        Value::Object(fields) => drop(fields.insert(name.to_owned(), value)),
        Value::Array(items) if name == "-" => items.push(value),
        other => unreachable!("{path} leads into {other}"),
    }
}

/// An object as the API server alone fills it in, and as the webhook does.
fn webhook_and_policy_results<T: ValidatedKind>(object: &Value, old: Option<&Value>) -> [Value; 2] {
    let schema = schema(&T::kind(&()));
    let mut alone = object.clone();
    schema.apply_defaults(&mut alone);
    let mut by_webhook = alone.clone();
    for filling in T::CEL_DEFAULTS {
        for (path, value) in added(&patch(filling), &alone, old) {
            add_to(&mut alone, &path, value);
        }
    }
    let mut index = Index::default();
    index.mark_complete(IndexedKind::PriorityClass);
    let context = Context {
        cluster: &index,
        settings: &Settings::default(),
    };
    let new: T = serde_json::from_value(by_webhook.clone()).unwrap();
    let old: Option<T> = old.map(|it| serde_json::from_value(it.clone()).unwrap());
    for entry in T::defaults(&new, old.as_ref(), &context).items() {
        entry.apply(&mut by_webhook);
    }
    [alone, by_webhook]
}

/// Holds both against each other for an object with each of these specs and metadata, made and changed.
fn check_agreement<T: ValidatedKind>(specs: &[Value], olds: &[Value]) {
    let ours = labels::RESOURCE_IN_USE;
    let mut filled = 0_usize;
    for finalizers in [
        json!(null),
        json!([]),
        json!(["a"]),
        json!([ours]),
        json!(["a", ours]),
    ] {
        let mut metadata = Map::from_iter([("name".to_owned(), json!("one"))]);
        if !finalizers.is_null() {
            metadata.insert("finalizers".to_owned(), finalizers);
        }
        let whole = |spec: &Value| json!({"metadata": metadata, "spec": spec});
        let olds: Vec<Value> = olds.iter().map(whole).collect();
        for object in specs.iter().map(whole) {
            for old in [None].into_iter().chain(olds.iter().map(Some)) {
                let [alone, by_webhook] = webhook_and_policy_results::<T>(&object, old);
                assert_eq!(alone, by_webhook, "{object} from {old:?}");
                filled += usize::from(alone != object);
            }
        }
    }
    assert!(filled > 0);
}

#[test]
fn cluster_queue_policy_adds_defaults_and_finalizer() {
    let policies = [
        json!(null),
        json!({}),
        json!({"withinClusterQueue": "LowerOrNewerEqualPriority"}),
        json!({"reclaimWithinCohort": "Any", "borrowWithinCohort": {}}),
        json!({"borrowWithinCohort": {"policy": "LowerPriority"}}),
        json!({"borrowWithinCohort": {"maxPriorityThreshold": 1}}),
        json!({"withinClusterQueue": "Never", "reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "Never"}}),
    ];
    let mut specs = Vec::new();
    for policy in policies {
        for is_elastic in [false, true] {
            let mut spec = json!({});
            if !policy.is_null() {
                spec["preemption"] = policy.clone();
            }
            if is_elastic {
                spec["elastic"] = json!({});
            }
            specs.push(spec);
        }
    }
    check_agreement::<ClusterQueue>(&specs, &[json!({})]);
}

#[test]
fn flavor_policy_adds_finalizer() {
    check_agreement::<ResourceFlavor>(&[json!({})], &[json!({})]);
}

#[test]
fn workload_policy_keeps_priority_classes() {
    let classes = [
        json!({}),
        json!({"priorityClassName": "high"}),
        json!({"preemptionPriorityClassName": "low"}),
        json!({"priorityClassName": "high", "preemptionPriorityClassName": "low"}),
    ];
    let specs = classes.map(|mut spec| {
        spec["podSets"] = json!([{"template": {"spec": {"containers": []}}}]);
        spec
    });
    check_agreement::<Workload>(&specs, &specs);
}

/// Only the global default class is neither a schema default nor set by a policy.
#[test]
fn defaulted_kinds_have_mutating_policies() {
    let kinds = registry::built_in(&BTreeSet::new(), &Settings::default());
    let own = kinds
        .iter()
        .filter(|it| it.own && !it.defaulted_on.is_empty());
    let own: Vec<(&str, usize)> = own
        .map(|it| (it.kind.as_str(), it.cel_defaults.len()))
        .collect();
    assert_eq!(
        own,
        [("ClusterQueue", 4), ("ResourceFlavor", 1), ("Workload", 2)]
    );
}

#[test]
fn patch_creates_missing_parents() {
    let field = FieldDefault {
        path: "spec.a.b",
        when: "object.spec.c",
        value: "1",
    };
    assert_eq!(
        field_patch(&field),
        "!has(object.spec) || (has(object.spec) && has(object.spec.a) && has(object.spec.a.b)) || !(object.spec.c) ? [] : \
         ((has(object.spec) && has(object.spec.a)) ? [] : [JSONPatch{op: 'add', path: '/spec/a', value: {}}]) + \
         [JSONPatch{op: 'add', path: '/spec/a/b', value: 1}]"
    );
}
