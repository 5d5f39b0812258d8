//! Equality of objects as in Kueue (`equality.Semantic.DeepEqual` of Go). In decoded objects a missing field equals an
//! empty one, unless the field is a pointer, and quantities are compared by value.

use k8s_openapi::api::core::v1::{PodTemplateSpec, Toleration};
use lockkeeper_api::foreign::kueue::PodSetUpdate;
use lockkeeper_api::quantity::Quantity;
use serde_json::{Map, Value};

/// Maps, and structs that are not pointers in Go: an empty value equals a missing field.
const EMPTY_IS_MISSING: [&str; 6] = [
    "annotations",
    "labels",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "resources",
];

/// Booleans that are not pointers in Go: false equals a missing field.
const FALSE_IS_MISSING: [&str; 7] = [
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
];

/// Numbers that are not pointers in Go: zero equals a missing field.
const ZERO_IS_MISSING: [&str; 6] = [
    "failureThreshold",
    "hostPort",
    "initialDelaySeconds",
    "periodSeconds",
    "successThreshold",
    "timeoutSeconds",
];

/// Maps of quantities.
const AMOUNTS: [&str; 4] = ["capacity", "limits", "overhead", "requests"];

/// Whether two pod templates are equal.
pub(crate) fn templates_equal(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    // Most templates are equal field by field, and need no JSON values.
    a == b || template_value(a) == template_value(b)
}

/// Whether two lists of pod set updates are equal.
pub(crate) fn updates_equal(a: &[PodSetUpdate], b: &[PodSetUpdate]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| update_equal(a, b))
}

fn update_equal(a: &PodSetUpdate, b: &PodSetUpdate) -> bool {
    let tolerations = (&a.tolerations, &b.tolerations);
    a.name == b.name
        && a.labels == b.labels
        && a.annotations == b.annotations
        && a.node_selector == b.node_selector
        && tolerations.0.len() == tolerations.1.len()
        && (tolerations.0.iter().map(toleration_key)).eq(tolerations.1.iter().map(toleration_key))
}

/// The fields of a toleration; only `tolerationSeconds` is a pointer in Go.
fn toleration_key(toleration: &Toleration) -> ([&str; 4], Option<i64>) {
    let texts = [
        &toleration.key,
        &toleration.operator,
        &toleration.value,
        &toleration.effect,
    ];
    let texts = texts.map(|text| text.as_deref().unwrap_or_default());
    (texts, toleration.toleration_seconds)
}

fn template_value(template: &PodTemplateSpec) -> Option<Value> {
    // Serialising a decoded template does not fail.
    let value = serde_json::to_value(template).ok()?;
    normalized("", value)
}

/// The value of a field without parts that equal missing fields; `None` if nothing is left.
fn normalized(field: &str, value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Bool(false) if FALSE_IS_MISSING.contains(&field) => None,
        Value::Number(number) if number.as_i64() == Some(0) && ZERO_IS_MISSING.contains(&field) => {
            None
        }
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => {
            let items = items.into_iter();
            // An item stays in the list even if nothing of it is left: its position counts.
            let items = items.map(|it| normalized("", it).unwrap_or_default());
            Some(Value::Array(items.collect()))
        }
        Value::Object(fields) if AMOUNTS.contains(&field) => {
            let amounts: Map<_, _> = fields.into_iter().map(amount).collect();
            (!amounts.is_empty()).then_some(Value::Object(amounts))
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.filter_map(|(key, it)| normalized(&key, it).map(|it| (key, it)));
            let fields: Map<_, _> = fields.collect();
            let is_missing = fields.is_empty() && EMPTY_IS_MISSING.contains(&field);
            (!is_missing).then_some(Value::Object(fields))
        }
        other => Some(other),
    }
}

/// A quantity in a canonical form.
fn amount((name, value): (String, Value)) -> (String, Value) {
    let parsed = value.as_str().and_then(|it| it.parse::<Quantity>().ok());
    let value = parsed.map_or(value, |it| Value::String(it.nano().to_string()));
    (name, value)
}

#[cfg(test)]
mod tests {
    use super::templates_equal;
    use k8s_openapi::api::core::v1::PodTemplateSpec;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(a: Value, b: Value, is_same: bool) {
        let [a, b]: [PodTemplateSpec; 2] = [a, b].map(|it| serde_json::from_value(it).unwrap());
        assert_eq!(templates_equal(&a, &b), is_same);
        assert_eq!(templates_equal(&b, &a), is_same);
    }

    fn container(fields: &Value) -> Value {
        json!({"spec": {"containers": [fields]}})
    }

    #[test]
    fn templates_equal_ignores_notation() {
        let plain = || container(&json!({"name": "c"}));
        let requests = |cpu: &str| container(&json!({"resources": {"requests": {"cpu": cpu}}}));
        check(
            plain(),
            container(&json!({"name": "c", "resources": {}})),
            true,
        );
        check(
            plain(),
            container(&json!({"name": "c", "tty": false, "args": []})),
            true,
        );
        check(
            plain(),
            container(&json!({"name": "c", "tty": true})),
            false,
        );
        check(plain(), container(&json!({"name": "d"})), false);
        check(
            plain(),
            container(&json!({"name": "c", "securityContext": {}})),
            false,
        );
        check(requests("1"), requests("1000m"), true);
        check(requests("1"), requests("2"), false);
        check(
            json!({"metadata": {"labels": {"a": ""}}}),
            json!({"metadata": {"labels": {}}}),
            false,
        );
        check(json!({}), json!({"metadata": {"labels": {}}}), true);
    }
}
