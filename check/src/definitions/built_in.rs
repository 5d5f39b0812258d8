//! Checks the fields of an object of a built-in kind of Kubernetes.

use super::field_text::field_of;
use super::suggestions::unknown_field;
use crate::severity::Severity;
use lockkeeper_crd_schema::builtin::{BuiltInKind, Problem};
use lockkeeper_policies::finding::Finding;
use serde_json::Value;

/// Findings about unknown fields and wrong types; `None` if the kind is not a built-in one.
pub(crate) fn check_built_in(object: &Value) -> Option<Vec<(Severity, Finding)>> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let kind = BuiltInKind::find(text("apiVersion")?, text("kind")?)?;
    let problems = kind.problems(object).into_iter();
    let findings = problems.filter_map(|problem| match problem {
        Problem::Unknown { field, suggestion } => {
            let field = field_of(&field, object);
            (!is_directive(&field.pointer())).then(|| unknown_field(field, object, suggestion))
        }
        Problem::WrongType { field, reason } => {
            let field = field_of(&field, object);
            let value = object.pointer(&field.pointer());
            Some(Finding::decode_error(field, value, &reason))
        }
    });
    Some(findings.map(|it| (Severity::Error, it)).collect())
}

/// Whether a field is a directive of a strategic merge patch, such as `$patch`, for kustomize.
fn is_directive(pointer: &str) -> bool {
    pointer
        .rsplit('/')
        .next()
        .is_some_and(|it| it.starts_with('$'))
}

#[cfg(test)]
mod tests {
    use super::check_built_in;
    use serde_json::{Value, json};

    /// The findings about a pod with a spec.
    fn findings(spec: &Value) -> Vec<String> {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        let findings = check_built_in(&pod).unwrap().into_iter();
        findings.map(|(_, it)| it.to_string()).collect()
    }

    #[test]
    fn problems_of_built_in_kinds_name_field_and_suggestion() {
        let spec = json!({
            "containers": [{"name": "a", "imagePullpolicy": "Always", "ports": [{"containerPort": "80"}]}],
            "volumes": [{"$patch": "delete", "name": "a"}],
        });
        assert_eq!(
            findings(&spec),
            [
                "spec.containers[0].imagePullpolicy: Invalid value: \"Always\": unknown field, which would be dropped; did you mean imagePullPolicy? [SC005]",
                "spec.containers[0].ports[0].containerPort: Invalid value: \"80\": cannot decode string into int32 [SC001]",
            ]
        );
    }

    #[test]
    fn other_kinds_are_not_checked() {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Pod", "spec": 1});
        assert!(check_built_in(&object).is_none());
    }
}
