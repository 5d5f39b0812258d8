//! Every value of an object is converted or reported as dropped.

use super::super::{convert, has_content};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

/// Fields that objects of all kinds may have, where one may be wrong for its kind.
fn fields() -> Vec<(&'static str, Value)> {
    vec![
        ("/metadata/uid", json!("1")),
        ("/metadata/labels/kueue.x-k8s.io~1queue-name", json!("a")),
        (
            "/metadata/labels/kueue.x-k8s.io~1priority-class",
            json!("a"),
        ),
        (
            "/metadata/labels/kueue.x-k8s.io~1pod-group-name",
            json!("a"),
        ),
        ("/metadata/labels/app", json!("a")),
        ("/metadata/labels/notkueue.x-k8s.io~1a", json!("a")),
        (
            "/metadata/annotations/provreq.kueue.x-k8s.io~1a",
            json!("a"),
        ),
        ("/metadata/annotations/kueue.x-k8s.io~1podset-x", json!("a")),
        (
            "/metadata/annotations/lockkeeper.dev~1job-min-parallelism",
            json!("2"),
        ),
        (
            "/metadata/annotations/kueue.x-k8s.io~1job-min-parallelism",
            json!("2"),
        ),
        ("/spec/cohort", json!("a")),
        ("/spec/cohortName", json!("a")),
        ("/spec/admissionChecks", json!(["a"])),
        (
            "/spec/admissionChecksStrategy/admissionChecks",
            json!([{"name": "a"}]),
        ),
        (
            "/spec/concurrentAdmissionPolicy",
            json!({"migration": {"mode": "a"}}),
        ),
        ("/spec/fairSharing/weight", json!(2)),
        ("/spec/flavorFungibility/whenCanBorrow", json!("Borrow")),
        ("/spec/topologyName", json!("a")),
        (
            "/spec/podSets",
            json!([{"topologyRequest": {"required": "a"}, "count": 1}, {"count": 2}]),
        ),
        ("/spec/priority", json!(1)),
        ("/spec/priorityClassName", json!("a")),
        ("/spec/priorityClassRef", json!({"name": "a"})),
        ("/spec/preemptionGates", json!([{"name": "a"}])),
        ("/spec/unknown", json!({"a": [1, {"b": 2}]})),
        (
            "/spec/template/metadata/labels/kueue.x-k8s.io~1queue-name",
            json!("a"),
        ),
        ("/status/conditions", json!([{"type": "a"}])),
        ("/value", json!(3)),
    ]
}

fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for step in pointer.split('/').skip(1) {
        at = &mut at[step.replace("~1", "/")];
    }
    *at = value;
}

/// The pointers of all values.
fn leaves(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{at}/{}", name.replace('/', "~1")), out);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                leaves(value, &format!("{at}/{index}"), out);
            }
        }
        _ if has_content(value) => out.push(at.to_owned()),
        _ => {}
    }
}

fn is_below(pointer: &str, above: &str) -> bool {
    pointer
        .strip_prefix(above)
        .is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_leaf_is_converted_or_reported_dropped(
        version in select(vec!["kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2", "batch/v1", "v1"]),
        kind in select(vec!["ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Workload", "WorkloadPriorityClass", "Job", "Pod", "CronJob"]),
        fields in subsequence(fields(), 0..12),
    ) {
        let mut object = json!({"apiVersion": version, "kind": kind});
        for (pointer, value) in fields {
            put(&mut object, pointer, value);
        }
        let Some(converted) = convert(&object) else {
            return Ok(());
        };
        let Some(after) = &converted.object else {
            prop_assert_eq!(converted.dropped.len(), 1);
            return Ok(());
        };
        let mut all = Vec::new();
        leaves(&object, "", &mut all);
        for leaf in all {
            let is_lost = converted.dropped.iter().any(|it| is_below(&leaf, &it.field.pointer()));
            let moved = converted.renamed.iter().find(|it| is_below(&leaf, &it.from));
            let to = moved.map_or(leaf.clone(), |it| leaf.replacen(&it.from, &it.to, 1));
            let before = object.pointer(&leaf);
            let is_changed = ["/apiVersion", "/kind", "/spec/flavorFungibility/whenCanBorrow"].contains(&&*leaf);
            let is_kept = after.pointer(&to).is_some_and(|it| is_changed || Some(it) == before);
            prop_assert!(is_lost || is_kept, "{leaf}: {converted:?}");
        }
        // No name of Kueue is left.
        prop_assert!(!after.to_string().replace("notkueue", "").contains("kueue.x-k8s.io"), "{after}");
        prop_assert_eq!(convert(after), None);
    }
}
