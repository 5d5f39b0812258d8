//! Conversion of Kueue's `v1beta1` objects to `v1beta2`.
//!
//! Source: Kueue `apis/kueue/v1beta1/*_conversion.go`. Of the status, only the fields that rules read are converted.

use super::GROUP;
use serde_json::{Map, Value, json};

/// The version before the one that rules read.
pub const FORMER_VERSION: &str = "v1beta1";

/// A field that has another name in each of the two versions: as a JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedField {
    /// In `v1beta1`.
    pub from: &'static str,
    /// In `v1beta2`.
    pub to: &'static str,
}

const fn moved_field(from: &'static str, to: &'static str) -> MovedField {
    MovedField { from, to }
}

const COHORT: MovedField = moved_field("/spec/cohort", "/spec/cohortName");
const CHECKS: MovedField = moved_field(
    "/spec/admissionChecks",
    "/spec/admissionChecksStrategy/admissionChecks",
);
const CLASS: MovedField = moved_field("/spec/priorityClassName", "/spec/priorityClassRef/name");
const CLASS_SOURCE: MovedField = moved_field("/spec/priorityClassSource", "/spec/priorityClassRef");

/// Converts an object of `v1beta1` to `v1beta2`, and returns the moved fields. Any other object is unchanged.
pub fn upgrade(object: &mut Value) -> Vec<MovedField> {
    let version = format!("{GROUP}/{FORMER_VERSION}");
    if object.get("apiVersion").and_then(Value::as_str) != Some(&version) {
        return Vec::new();
    }
    if let Some(slot) = object.get_mut("apiVersion") {
        *slot = Value::from(format!("{GROUP}/{}", super::VERSION));
    }
    let kind = object.get("kind").and_then(Value::as_str);
    let kind = kind.unwrap_or_default().to_owned();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    match kind.as_str() {
        "ClusterQueue" => cluster_queue(spec),
        "Workload" => workload(spec),
        _ => Vec::new(),
    }
}

fn cluster_queue(spec: &mut Map<String, Value>) -> Vec<MovedField> {
    let mut all = Vec::new();
    if let Some(cohort) = spec.remove("cohort") {
        spec.insert("cohortName".to_owned(), cohort);
        all.push(COHORT);
    }
    // A list of checks takes precedence over a strategy; an empty list counts as absent.
    if let Some(Value::Array(names)) = spec.remove("admissionChecks")
        && !names.is_empty()
    {
        let checks: Vec<Value> = names.into_iter().map(|it| json!({"name": it})).collect();
        let strategy = json!({"admissionChecks": checks});
        spec.insert("admissionChecksStrategy".to_owned(), strategy);
        all.push(CHECKS);
    }
    // v1beta2 has one name, MayStopSearch, for both former values.
    for (key, former) in [("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")] {
        let fungibility = spec.get_mut("flavorFungibility");
        let value = fungibility.and_then(|it| it.get_mut(key));
        if let Some(value) = value.filter(|it| it.as_str() == Some(former)) {
            *value = Value::from("MayStopSearch");
        }
    }
    all
}

fn workload(spec: &mut Map<String, Value>) -> Vec<MovedField> {
    let source = spec.remove("priorityClassSource");
    let name = spec.remove("priorityClassName");
    let (group, kind) = match source.as_ref().and_then(Value::as_str) {
        Some("kueue.x-k8s.io/workloadpriorityclass") => (GROUP, "WorkloadPriorityClass"),
        Some("scheduling.k8s.io/priorityclass") => ("scheduling.k8s.io", "PriorityClass"),
        // Without a source Kueue drops the name.
        _ => return Vec::new(),
    };
    let name = name.unwrap_or_default();
    let class = json!({"group": group, "kind": kind, "name": name});
    spec.insert("priorityClassRef".to_owned(), class);
    vec![CLASS, CLASS_SOURCE]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: &str, former: Value, expected: Value, moved: &[MovedField]) {
        let object = |version: &str, spec| json!({"apiVersion": format!("{GROUP}/{version}"), "kind": kind, "spec": spec});
        let mut upgraded = object(FORMER_VERSION, former);
        assert_eq!(upgrade(&mut upgraded), moved);
        assert_eq!(upgraded, object("v1beta2", expected));
        assert_eq!(
            upgrade(&mut upgraded),
            [],
            "it is of the newer version by now"
        );
    }

    #[test]
    fn moved_fields_are_reported() {
        check(
            "ClusterQueue",
            json!({"cohort": "a", "stopPolicy": "Hold"}),
            json!({"cohortName": "a", "stopPolicy": "Hold"}),
            &[COHORT],
        );
        check(
            "ClusterQueue",
            json!({"admissionChecks": ["x", "y"], "admissionChecksStrategy": {"admissionChecks": [{"name": "z"}]}}),
            json!({"admissionChecksStrategy": {"admissionChecks": [{"name": "x"}, {"name": "y"}]}}),
            &[CHECKS],
        );
        check(
            "ClusterQueue",
            json!({"admissionChecks": []}),
            json!({}),
            &[],
        );
        check(
            "LocalQueue",
            json!({"clusterQueue": "a"}),
            json!({"clusterQueue": "a"}),
            &[],
        );
    }

    #[test]
    fn fungibility_values_are_upgraded() {
        check(
            "ClusterQueue",
            json!({"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}}),
            json!({"flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}}),
            &[],
        );
        check(
            "ClusterQueue",
            json!({"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}),
            json!({"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}),
            &[],
        );
    }

    #[test]
    fn priority_class_name_becomes_reference() {
        check(
            "Workload",
            json!({"priorityClassSource": "scheduling.k8s.io/priorityclass", "priorityClassName": "high"}),
            json!({"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}}),
            &[CLASS, CLASS_SOURCE],
        );
        check(
            "Workload",
            json!({"priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass", "priorityClassName": "high"}),
            json!({"priorityClassRef": {"group": GROUP, "kind": "WorkloadPriorityClass", "name": "high"}}),
            &[CLASS, CLASS_SOURCE],
        );
        // Without a source Kueue drops the name.
        check(
            "Workload",
            json!({"priorityClassSource": "", "priorityClassName": "high"}),
            json!({}),
            &[],
        );
    }

    #[test]
    fn other_objects_are_unchanged() {
        for value in [
            json!(null),
            json!([]),
            json!({"apiVersion": 1}),
            json!({"apiVersion": "v1", "spec": {"cohort": "a"}}),
        ] {
            let mut same = value.clone();
            assert_eq!(upgrade(&mut same), []);
            assert_eq!(same, value);
        }
        let mut bare =
            json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": 3});
        assert_eq!(upgrade(&mut bare), []);
    }
}
