//! The change of an object of a built-in kind, as `kubectl apply` makes it.
//!
//! A manifest has only a part of the stored object. Fields that the API server or a controller sets are unknown if the old
//! manifest does not have them, so that a new manifest that has them changes nothing.

use super::request::request;
use lockkeeper_crd_schema::builtin::{BuiltInKind, Problem, Release};
use lockkeeper_crd_schema::crd::{FieldValidation, Verdict};
use serde_json::{Map, Value, json};

/// The fields of specs that the API server or a controller sets to values that a manifest does not tell.
const ASSIGNED: [(&str, &[&str]); 3] = [
    ("PersistentVolumeClaim", &["storageClassName", "volumeName"]),
    (
        "Pod",
        &[
            "nodeName",
            "preemptionPolicy",
            "priority",
            "serviceAccount",
            "serviceAccountName",
        ],
    ),
    (
        "Service",
        &[
            "clusterIP",
            "clusterIPs",
            "healthCheckNodePort",
            "ipFamilies",
            "ipFamilyPolicy",
        ],
    ),
];

/// The field of a Job that has a default only while `parallelism` is absent. An update keeps the default.
const COMPLETIONS: &str = "completions";

/// An address of a service with an unknown one, of the range for documentation (RFC 5737).
const SOME_ADDRESS: &str = "192.0.2.1";

/// An update: the stored object, and the one that replaces it.
pub(super) struct BuiltInChange {
    pub(super) old: Value,
    pub(super) new: Value,
}

impl BuiltInChange {
    /// The change from an old manifest; `None` if the old manifest is of another version, is no whole object, or is a Pod
    /// of a cluster, which has volumes that no manifest has. Costs a validation of the old object.
    pub(super) fn new(kind: BuiltInKind, object: &Value, old: &Value) -> Option<Self> {
        if old.get("apiVersion") != object.get("apiVersion") || is_live(old) && kind.name() == "Pod"
        {
            return None;
        }
        let mut change = Self {
            old: stored(kind, old)?,
            new: kind.created(&request(object, None, FieldValidation::Ignore))?,
        };
        change.assign_fields(kind, object, old);
        if kind.name() == "Job" && !has_field(object, COMPLETIONS) && !has_field(old, COMPLETIONS) {
            copy(&change.old, &mut change.new, COMPLETIONS);
        }
        match kind.name() {
            "Job" if is_live(old) => {
                for key in ["selector", "template"] {
                    change.keep(key);
                }
            }
            "PersistentVolumeClaim" if !is_live(old) => change.bind_claim(),
            _ => {}
        }
        Some(change)
    }

    /// Copies assigned fields that only one of the manifests has.
    fn assign_fields(&mut self, kind: BuiltInKind, object: &Value, old: &Value) {
        let assigned = ASSIGNED.iter().find(|it| it.0 == kind.name());
        let assigned = assigned.map_or(&[][..], |it| it.1);
        // A service without an address is the only one of which the address is known.
        let is_headless = object.pointer("/spec/clusterIP") == Some(&"None".into());
        for key in assigned {
            match (has_field(object, key), has_field(old, key)) {
                (true, false) if is_headless && key.starts_with("clusterIP") => {}
                (true, false) => copy(&self.new, &mut self.old, key),
                (false, true) if is_live(old) => copy(&self.old, &mut self.new, key),
                _ => {}
            }
        }
        if is_headless && kind.name() == "Service" {
            self.assign_address();
        }
    }

    /// Sets an address of the old service, if it has one that is unknown.
    fn assign_address(&mut self) {
        let Some(Value::Object(spec)) = self.old.get_mut("spec") else {
            return;
        };
        if spec.get("type") != Some(&"ExternalName".into()) && !spec.contains_key("clusterIP") {
            spec.insert("clusterIP".to_owned(), SOME_ADDRESS.into());
            spec.insert("clusterIPs".to_owned(), json!([SOME_ADDRESS]));
        }
    }

    /// Keeps the entries of a field of a live object that the new one does not have, as a merge does. Lists are replaced.
    fn keep(&mut self, key: &str) {
        let old = self.old.get("spec").and_then(|it| it.get(key));
        let new = self.new.get_mut("spec").and_then(|it| it.get_mut(key));
        if let (Some(old), Some(new)) = (old, new) {
            merge_absent(new, old);
        }
    }

    /// Binds the old claim: only a bound one can grow, and a manifest does not tell.
    fn bind_claim(&mut self) {
        let requests = self.old.pointer("/spec/resources/requests").cloned();
        let status = json!({"phase": "Bound", "capacity": requests.unwrap_or_default()});
        if let Value::Object(fields) = &mut self.old {
            fields.insert("status".to_owned(), status);
        }
    }
}

/// Whether an object of a built-in kind of a release is whole: not a patch, and not a base to which a patch adds required
/// fields. Objects of other kinds count as whole. Costs a validation.
pub(crate) fn is_whole(release: Release, object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let kind = match (text("apiVersion"), text("kind")) {
        (Some(api_version), Some(kind)) => BuiltInKind::find_in(release, api_version, kind),
        _ => None,
    };
    kind.is_none_or(|it| stored(it, object).is_some())
}

/// The stored form of an old manifest; `None` if the API server rejects it.
fn stored(kind: BuiltInKind, old: &Value) -> Option<Value> {
    if is_live(old) {
        return Some(old.clone());
    }
    let has_directive = kind.problems(old).iter().any(|it| match it {
        Problem::Unknown { field, .. } => is_directive(field),
        Problem::WrongType { .. } => false,
    });
    if has_directive {
        return None;
    }
    match kind
        .answer(&request(old, None, FieldValidation::Ignore))
        .verdict
    {
        Verdict::Accepted(stored) => Some(stored),
        Verdict::Undecodable { .. } | Verdict::Invalid(_) => None,
    }
}

/// Whether a field is a directive of a strategic merge patch, such as `$patch`, for kustomize.
pub(super) fn is_directive(field: &str) -> bool {
    let name = field.rsplit(['/', '.']).next();
    name.is_some_and(|it| it.starts_with('$'))
}

/// Whether an API server has stored an object.
pub(super) fn is_live(object: &Value) -> bool {
    object.pointer("/metadata/uid").is_some()
}

/// Whether a spec has a field.
fn has_field(object: &Value, key: &str) -> bool {
    object.get("spec").is_some_and(|it| it.get(key).is_some())
}

/// Copies a field of a spec.
fn copy(from: &Value, to: &mut Value, key: &str) {
    let value = from.get("spec").and_then(|it| it.get(key)).cloned();
    if let (Some(value), Some(Value::Object(spec))) = (value, to.get_mut("spec")) {
        spec.insert(key.to_owned(), value);
    }
}

/// Adds the entries that only the old value has.
fn merge_absent(new: &mut Value, old: &Value) {
    let (Value::Object(new), Value::Object(old)) = (new, old) else {
        return;
    };
    for (key, value) in old {
        merge_absent(
            new.entry(key.clone()).or_insert_with(|| empty_of(value)),
            value,
        );
    }
}

/// The value to merge into an absent one.
fn empty_of(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(Map::new()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{BuiltInKind, FieldValidation, Release, is_whole, request};
    use crate::definitions::check_built_in;
    use serde_json::{Value, json};

    /// The fields that a change is reported for.
    #[track_caller]
    fn fields(object: &Value, old: &Value) -> Vec<String> {
        let findings = check_built_in(Release::NEWEST, object, Some(old))
            .unwrap()
            .into_iter();
        let mut fields: Vec<String> = findings.map(|(_, it)| it.field.text()).collect();
        fields.sort();
        fields.dedup();
        fields
    }

    fn patched(old: &Value, patch: &Value) -> Value {
        let mut object = old.clone();
        json_patch::merge(&mut object, patch);
        object
    }

    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        old: Value,
        patch: Value,
        fields: Vec<String>,
    }

    /// The end-to-end test `built_in_changes` sends the same changes to an API server.
    #[test]
    fn changes_are_rejected_as_the_api_server_does() {
        let text = include_str!("../../../tests/samples/built_in_changes.yaml");
        let cases: Vec<Case> = serde_saphyr::from_str(text).unwrap();
        for case in cases {
            assert_eq!(fields(&case.old, &case.old), [""; 0], "{}", case.name);
            let new = patched(&case.old, &case.patch);
            assert_eq!(fields(&new, &case.old), case.fields, "{}", case.name);
        }
    }

    fn claim(storage: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}},
        })
    }

    /// Only a bound claim may grow; a manifest does not have the status.
    #[test]
    fn claims_may_grow_but_not_shrink() {
        assert_eq!(fields(&claim("2Gi"), &claim("1Gi")), [""; 0]);
        let shrunk = fields(&claim("1Gi"), &claim("2Gi"));
        assert_eq!(shrunk, ["spec.resources.requests.storage"]);
    }

    fn job(image: &str) -> Value {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
            "spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": image}],
            }}},
        })
    }

    /// A Job of a cluster has labels, a selector and nodes that its manifest does not have.
    #[test]
    fn old_objects_of_a_cluster_may_have_more_fields() {
        let manifest = job("a:1");
        let labels = json!({"batch.kubernetes.io/controller-uid": "b", "job-name": "train"});
        let live = json!({
            "metadata": {"uid": "b", "resourceVersion": "1"},
            "spec": {
                "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "b"}},
                "template": {"metadata": {"labels": labels}, "spec": {"nodeSelector": {"pool": "gpu"}}},
            },
            "status": {"active": 1},
        });
        let created = request(&manifest, None, FieldValidation::Strict);
        let kind = BuiltInKind::find("batch/v1", "Job").unwrap();
        let live = patched(&kind.created(&created).unwrap(), &live);
        assert_eq!(fields(&manifest, &live), [""; 0]);
        assert_eq!(fields(&job("a:2"), &live), ["spec.template"]);
        let pod = |uid: Option<&str>, command: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": uid},
                "spec": {"containers": [{"name": "a", "image": "a", "command": [command]}]},
            })
        };
        let new = patched(&pod(None, "a"), &json!({"metadata": {"uid": null}}));
        assert_eq!(fields(&new, &pod(Some("b"), "b")), [""; 0]);
    }

    #[test]
    fn objects_that_the_api_server_rejects_are_not_whole() {
        let base = patched(
            &job("a"),
            &json!({"spec": {"template": {"spec": {"restartPolicy": null}}}}),
        );
        let patch = patched(&job("a"), &json!({"spec": {"$patch": "replace"}}));
        let other = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
        for (object, expected) in [
            (job("a"), true),
            (base, false),
            (patch, false),
            (other, true),
        ] {
            assert_eq!(is_whole(Release::NEWEST, &object), expected, "{object}");
        }
    }
}
