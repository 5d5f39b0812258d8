//! Properties of declarations: no input panics, and a write changes only declared fields.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use lockkeeper_api::JobKind;
use lockkeeper_api::job_kind::PodSetSource;
use lockkeeper_job_kinds::{DeclaredKind, JobPath, PodSetWrite};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// Names of fields, few enough that paths and objects meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a", "b", "c", "d.e", "template", "replicas", "suspend",
    ])
    .prop_map(str::to_owned)
}

fn path(depth: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(name(), 1..=depth)
}

fn path_text(names: &[String], is_from_root: bool) -> String {
    let root = is_from_root.then(|| "spec".to_owned());
    let names = names.iter().map(|name| format!("['{name}']"));
    root.into_iter().chain(names).collect()
}

fn template() -> impl Strategy<Value = Value> {
    (0..3_u8, any::<bool>()).prop_map(|(cpu, has_selector)| {
        let mut spec =
            json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]});
        if has_selector {
            spec["nodeSelector"] = json!({"zone": "x"});
        }
        json!({"metadata": {"labels": {"app": "x"}}, "spec": spec})
    })
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..5_i64).prop_map(Value::from),
        name().prop_map(Value::from),
        template(),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

/// A declaration with one list or map, one single template, and perhaps a field that a stop resets.
fn declaration() -> impl Strategy<Value = JobKind> {
    let count = prop::sample::select(vec![
        json!({}),
        json!({"count": "item.?replicas.orValue(2)"}),
        json!({"count": "self.spec.a"}),
        json!({"count": "3"}),
        json!({"countField": "replicas"}),
        json!({"countField": "replicas", "minimum": "1"}),
    ]);
    let reset = prop::option::of((path(2), any::<Option<bool>>()));
    (path(2), path(2), path(2), path(2), count, any::<bool>(), reset).prop_map(
        |(suspend, list, inside, single, count, is_single_first, reset)| {
            let mut of_list = json!({"forEach": path_text(&list, true), "template": path_text(&inside, false),
                "nameExpression": "'item-' + string(key)"});
            json_patch::merge(&mut of_list, &count);
            let mut pod_sets = vec![
                of_list,
                json!({"name": "single", "template": path_text(&single, true)}),
            ];
            if is_single_first {
                pod_sets.reverse();
            }
            let reset = reset.iter();
            let reset = reset.map(|(path, value)| json!({"path": path_text(path, true), "value": value}));
            let declaration = json!({
                "metadata": {"name": "jobs.example.com"},
                "spec": {"version": "v1", "kind": "Job", "suspend": {"path": path_text(&suspend, true)},
                    "podSets": pod_sets, "resetOnStop": reset.collect::<Vec<_>>()},
            });
            serde_json::from_value(declaration).unwrap()
        },
    )
}

/// A random job that often has what the declaration reads.
fn declared_job() -> impl Strategy<Value = (JobKind, Value)> {
    let items = prop::collection::vec((template(), 0..4_i64), 0..4);
    let found = (prop::option::weighted(0.9, template()), any::<bool>());
    (declaration(), tree(), items, found).prop_map(
        |(declaration, spec, items, (single, is_map))| {
            let mut object = json!({"metadata": {"name": "a"}, "spec": spec});
            let fields = |text: &str| -> Vec<String> {
                let path = JobPath::parse(text).unwrap();
                path.fields().map(str::to_owned).collect()
            };
            for pod_sets in &declaration.spec.pod_sets {
                let path = fields(pod_sets.template.as_deref().unwrap());
                let Some(list) = &pod_sets.for_each else {
                    if let Some(template) = single.clone() {
                        place(&mut object, &path, template);
                    }
                    continue;
                };
                let items = items.iter().map(|(template, replicas)| {
                    let mut item = json!({"replicas": replicas});
                    place(&mut item, &path, template.clone());
                    item
                });
                let items: Value = if is_map {
                    let names = ["x", "y", "z"].map(str::to_owned);
                    names.into_iter().zip(items).collect()
                } else {
                    items.collect()
                };
                place(&mut object, &fields(list), items);
            }
            (declaration, object)
        },
    )
}

/// Sets a field. What is on the way to it and no object is replaced.
fn place(object: &mut Value, path: &[String], value: Value) {
    let Some((name, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    place(&mut object[name], rest, value);
}

/// Removes a field, so that objects that differ only in it are equal.
fn remove(object: &mut Value, names: &[&str]) {
    let Some((last, way)) = names.split_last() else {
        return;
    };
    let found = way
        .iter()
        .try_fold(object, |value, name| value.get_mut(*name));
    if let Some(Value::Object(fields)) = found {
        fields.remove(*last);
    }
}

/// Removes the node selector below the template of an item, and the declared number of pods.
fn remove_pods(item: &mut Value, pod_sets: &PodSetSource) {
    let template = JobPath::parse(pod_sets.template.as_deref().unwrap()).unwrap();
    let names: Vec<&str> = template.fields().chain(["spec", "nodeSelector"]).collect();
    remove(item, &names);
    if let Some(count) = &pod_sets.count_field {
        remove(item, &[count]);
    }
}

/// The object without the fields that the declaration permits to write.
fn without_declared_fields(declaration: &JobKind, object: &Value) -> Value {
    let mut object = object.clone();
    let parse = |text: &str| JobPath::parse(text).unwrap();
    for pod_sets in &declaration.spec.pod_sets {
        let Some(list) = &pod_sets.for_each else {
            remove_pods(&mut object, pod_sets);
            continue;
        };
        let list = parse(list);
        let found = list
            .fields()
            .try_fold(&mut object, |value, name| value.get_mut(name));
        match found {
            Some(Value::Array(items)) => items.iter_mut().for_each(|it| remove_pods(it, pod_sets)),
            Some(Value::Object(items)) => {
                items.values_mut().for_each(|it| remove_pods(it, pod_sets));
            }
            _ => {}
        }
    }
    let suspend = declaration.spec.suspend.as_ref().unwrap();
    let resets = declaration.spec.reset_on_stop.iter();
    let all = resets.map(|it| &it.path).chain(suspend.path.as_ref());
    for path in all {
        let path = parse(path);
        let names: Vec<&str> = path.fields().collect();
        remove(&mut object, &names);
    }
    object
}

/// Objects that a write creates on the way to a field, also in place of null, are empty without it. The API server
/// stores no nulls.
fn without_empty_objects(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, it)| (name.clone(), without_empty_objects(it)));
            let is_left = |it: &Value| !it.is_null() && *it != json!({});
            fields.filter(|(_, it)| is_left(it)).collect()
        }
        Value::Array(items) => items.iter().map(without_empty_objects).collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn writes_change_only_declared_fields((declaration, object) in declared_job()) {
        let Ok(kind) = DeclaredKind::compile(&declaration) else { return Ok(()) };
        let Ok(job) = kind.read(&object) else { return Ok(()) };
        let write = PodSetWrite { pod_spec: json!({"nodeSelector": {"pool": "spot"}}), count: Some(1) };
        let placed = vec![write; job.pod_sets.len()];
        let patch = kind.placement_patch(&job.templates, &placed).expect("the source has the templates");
        let mut after = object.clone();
        json_patch::merge(&mut after["spec"], &patch);
        json_patch::merge(&mut after["spec"], &kind.suspend_patch());
        let expected = without_empty_objects(&without_declared_fields(&declaration, &object));
        let found = without_empty_objects(&without_declared_fields(&declaration, &after));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn suspend_and_start_are_read_back((declaration, object) in declared_job()) {
        let Ok(kind) = DeclaredKind::compile(&declaration) else { return Ok(()) };
        let mut object = object;
        json_patch::merge(&mut object["spec"], &kind.suspend_patch());
        prop_assert!(kind.is_suspended(&object));
        json_patch::merge(&mut object["spec"], &kind.start_patch());
        prop_assert!(!kind.is_suspended(&object));
    }
}

/// Enough of the random jobs are read, so that the properties say something.
#[test]
fn random_jobs_are_often_read() {
    let mut runner = TestRunner::deterministic();
    let strategy = declared_job();
    let mut read = 0;
    for _ in 0..1_000 {
        let (declaration, object) = strategy.new_tree(&mut runner).unwrap().current();
        let kind = DeclaredKind::compile(&declaration);
        let job = kind.map(|it| it.read(&object));
        read += usize::from(job.is_ok_and(|it| it.is_ok_and(|it| !it.pod_sets.is_empty())));
    }
    assert!(read >= 100, "{read} of 1,000");
}
