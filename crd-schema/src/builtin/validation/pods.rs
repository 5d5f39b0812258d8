//! Pods, and what an update of a pod may change.

use super::causes::{Below, Causes};
use super::fields::{integer, is_equal, list, set, text, text_entries, value};
use super::pod_spec::{PodContext, validate_new_pod, validate_pod};
use lockkeeper_api::field_path::FieldPath;
use serde_json::{Map, Value};

const DEADLINE_MAX: i64 = 2_147_483_647;

fn context<'a>(object: &'a Value, old: Option<&'a Value>) -> PodContext<'a> {
    PodContext {
        spec: value(object, "spec"),
        owner: object,
        old: old.map(|it| value(it, "spec")),
        is_pod: true,
    }
}

/// Validates a pod.
pub(super) fn validate(object: &Value, old: Option<&Value>, out: &mut Causes) {
    let pod = context(object, old);
    validate_pod(&pod, out);
    match old {
        None => validate_new_pod(&pod, out),
        Some(old) => {
            annotations(object, old, out);
            update(pod.spec, value(old, "spec"), out);
        }
    }
}

fn annotations(object: &Value, old: &Value, out: &mut Causes) {
    let path = FieldPath::new("metadata.annotations");
    let is_fixed = |key: &str| {
        key == "kubernetes.io/config.mirror"
            || key.starts_with("container.apparmor.security.beta.kubernetes.io/")
    };
    let (new, old) = (value(object, "metadata"), value(old, "metadata"));
    let all = |it: &Value| -> Vec<(String, String)> {
        let fixed = text_entries(it, "annotations").filter(|it| is_fixed(it.0));
        fixed
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    let (new, old) = (all(new), all(old));
    let changed = old.iter().filter(|it| !new.contains(it));
    let added = new.iter().filter(|it| !old.iter().any(|old| old.0 == it.0));
    for (key, _) in changed.chain(added) {
        out.forbidden(path.entry(key), "may not be added, removed or updated");
    }
}

/// Validates the numbers of containers. Returns whether they differ.
fn containers_differ(spec: &Value, old: &Value, key: &'static str, out: &mut Causes) -> bool {
    let is_different = list(spec, key).len() != list(old, key).len();
    if is_different {
        let detail = "pod updates may not add or remove containers";
        out.forbidden(FieldPath::new("spec").field(key), detail);
    }
    is_different
}

fn update(spec: &Value, old: &Value, out: &mut Causes) {
    if ["containers", "initContainers"]
        .into_iter()
        .any(|key| containers_differ(spec, old, key, out))
    {
        return;
    }
    let path = FieldPath::new("spec");
    let deadline_path = path.child("activeDeadlineSeconds");
    match (
        integer(spec, "activeDeadlineSeconds"),
        integer(old, "activeDeadlineSeconds"),
    ) {
        (Some(new), old) => {
            if !(0..=DEADLINE_MAX).contains(&new) {
                out.invalid(deadline_path, "must be between 0 and 2147483647, inclusive");
                return;
            }
            if old.is_some_and(|it| it < new) {
                out.invalid(
                    deadline_path,
                    "must be less than or equal to previous value",
                );
                return;
            }
        }
        (None, Some(_)) => {
            out.invalid(
                deadline_path,
                "must not update from a positive integer to nil value",
            );
        }
        (None, None) => {}
    }
    tolerations(spec, old, out);
    for (position, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !list(old, "schedulingGates")
            .iter()
            .any(|it| text(it, "name") == name)
        {
            let path = path.child("schedulingGates").at(position).field("name");
            out.forbidden(path, "only deletion is allowed");
        }
    }
    if !is_equal(&without_updatable(spec, old, out), old) {
        out.forbidden(path, "pod updates may not change fields other than images of containers, activeDeadlineSeconds, added tolerations, and terminationGracePeriodSeconds");
    }
}

/// The tolerations of a pod with those that admission adds.
fn admitted_tolerations(spec: &Value) -> Vec<Value> {
    let mut out = list(spec, "tolerations").to_vec();
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerates = |it: &Value| {
            (text(it, "key").is_empty() || text(it, "key") == key)
                && matches!(text(it, "effect"), "" | "NoExecute")
        };
        if !out.iter().any(tolerates) {
            let added =
                serde_json::json!({"key": key, "operator": "Exists", "effect": "NoExecute"});
            out.push(added);
        }
    }
    out
}

fn tolerations(spec: &Value, old: &Value, out: &mut Causes) {
    let rest = |it: &Value| {
        let mut fields = it.as_object().cloned().unwrap_or_default();
        fields.remove("tolerationSeconds");
        Value::Object(fields)
    };
    let new = admitted_tolerations(spec);
    let mut stored = list(old, "tolerations").iter();
    if !stored.all(|old| new.iter().any(|it| is_equal(&rest(it), &rest(old)))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        out.forbidden(FieldPath::new("spec.tolerations"), detail);
    }
}

/// The spec with the stored values of the fields that an update may change. Reports changes of scheduling directives
/// that a gated pod may not make.
fn without_updatable(spec: &Value, old: &Value, out: &mut Causes) -> Value {
    let mut fields = spec.as_object().cloned().unwrap_or_default();
    for key in ["containers", "initContainers"] {
        if let Some(Value::Array(containers)) = fields.get_mut(key) {
            for (container, old) in containers.iter_mut().zip(list(old, key)) {
                if let Value::Object(container) = container {
                    container.insert("image".to_owned(), value(old, "image").clone());
                }
            }
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        fields.insert(key.to_owned(), value(old, key).clone());
    }
    let grace = integer(old, "terminationGracePeriodSeconds");
    if grace.is_some_and(|it| it < 0) && integer(spec, "terminationGracePeriodSeconds") == Some(1) {
        let key = "terminationGracePeriodSeconds";
        fields.insert(key.to_owned(), value(old, key).clone());
    }
    // Admission keeps the stored priority.
    for key in ["priority", "preemptionPolicy"] {
        if !fields.contains_key(key) {
            fields.insert(key.to_owned(), value(old, key).clone());
        }
    }
    if !list(old, "schedulingGates").is_empty() {
        gated(&mut fields, old, out);
    }
    Value::Object(fields)
}

fn gated(fields: &mut Map<String, Value>, old: &Value, out: &mut Causes) {
    let spec = Value::Object(fields.clone());
    let path = FieldPath::new("spec");
    let selector = value(&spec, "nodeSelector");
    let mut stored = text_entries(old, "nodeSelector");
    if !stored.all(|(key, it)| text(selector, key) == it && set(selector, key).is_some()) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        out.invalid(path.child("nodeSelector"), detail);
    }
    fields.insert(
        "nodeSelector".to_owned(),
        value(old, "nodeSelector").clone(),
    );
    let affinity = |it: &Value| value(value(it, "affinity"), "nodeAffinity").clone();
    let (new, stored) = (affinity(&spec), affinity(old));
    if is_equal(&new, &stored) {
        return;
    }
    node_affinity(&new, &stored, out);
    let mut merged = value(&spec, "affinity")
        .as_object()
        .cloned()
        .unwrap_or_default();
    merged.insert("nodeAffinity".to_owned(), stored);
    let merged =
        if merged.values().all(|it| is_equal(it, &Value::Null)) && set(old, "affinity").is_none() {
            Value::Null
        } else {
            Value::Object(merged)
        };
    fields.insert("affinity".to_owned(), merged);
}

fn node_affinity(new: &Value, old: &Value, out: &mut Causes) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let path = FieldPath::new("spec.affinity.nodeAffinity").field(REQUIRED);
    let path = path.field("nodeSelectorTerms");
    let Some(required) = set(old, REQUIRED) else {
        return;
    };
    let (old, new) = (
        list(required, "nodeSelectorTerms"),
        list(value(new, REQUIRED), "nodeSelectorTerms"),
    );
    if !old.is_empty() && old.len() != new.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        out.invalid(path, detail);
        return;
    }
    for (position, (old, new)) in old.iter().zip(new).enumerate() {
        let keys = ["matchExpressions", "matchFields"];
        let is_kept = |key: &str| {
            let (old, new) = (list(old, key), list(new, key));
            new.len() >= old.len() && old.iter().zip(new).all(|(a, b)| is_equal(a, b))
        };
        let was_empty = keys.iter().all(|it| list(old, it).is_empty());
        let is_changed = was_empty && keys.iter().any(|it| !list(new, it).is_empty());
        if is_changed || !keys.into_iter().all(is_kept) {
            out.invalid(
                path.at(position),
                "only additions are allowed (no mutations or deletions)",
            );
        }
    }
}
