//! Checks an object of a built-in kind of Kubernetes.

use super::built_in_change::{BuiltInChange, is_directive, is_live};
use super::built_in_version::{deprecated_version, field_releases};
use super::field_text::{decode_finding, field_of};
use super::request::request;
use super::suggestions::unknown_field;
use crate::severity::Severity;
use lockkeeper_crd_schema::builtin::{BuiltInKind, Problem, Release};
use lockkeeper_crd_schema::crd::{FieldValidation, Verdict};
use lockkeeper_crd_schema::display_value;
use lockkeeper_policies::finding::{ErrorKind, Finding};
use serde_json::Value;

/// Findings about unknown fields, wrong types and invalid values in a release of Kubernetes; `None` if the kind is not a
/// built-in one of the release. [`super::unserved_version`] checks the version.
///
/// Values are validated as in the creation of the object, or as in its change from a whole old object. Not those of an
/// object with a uid, which the API server has accepted, nor those of a patch, which is no whole object.
pub(crate) fn check_built_in(
    release: Release,
    object: &Value,
    old: Option<&Value>,
) -> Option<Vec<(Severity, Finding)>> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let kind = BuiltInKind::find_in(release, text("apiVersion")?, text("kind")?)?;
    let (mut findings, has_shape) = shape(kind, object);
    let has_values = has_shape && !is_live(object);
    if has_values {
        findings.extend(value_findings(kind, object, old));
    }
    let is_secret = kind.name() == "Secret";
    let finished = findings.into_iter().map(|mut it| {
        // The report may be read by more people than the secret.
        it.value = it.value.filter(|_| !is_secret);
        (Severity::Error, it)
    });
    let deprecated = deprecated_version(&kind).map(|it| (Severity::Warning, it));
    Some(finished.chain(deprecated).collect())
}

/// The findings of [`check_built_in`] about unknown fields and wrong types alone.
pub(crate) fn shape_findings(release: Release, object: &Value) -> Vec<Finding> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let kind = text("apiVersion")
        .zip(text("kind"))
        .and_then(|(version, kind)| BuiltInKind::find_in(release, version, kind));
    kind.map_or_else(Vec::new, |kind| shape(kind, object).0)
}

/// Findings about unknown fields and wrong types, and whether the values can be validated.
fn shape(kind: BuiltInKind, object: &Value) -> (Vec<Finding>, bool) {
    let mut findings = Vec::new();
    let mut has_values = true;
    for problem in kind.problems(object) {
        match problem {
            Problem::Unknown {
                field,
                suggestion,
                later,
            } => {
                let field = field_of(&field, object);
                if is_directive(&field.pointer()) {
                    has_values = false;
                } else if later.is_empty() {
                    findings.push(unknown_field(field, object, suggestion));
                } else {
                    let mut finding = unknown_field(field, object, None);
                    let detail = format!("{}; {}", finding.detail, field_releases(&later));
                    finding.detail = detail.into();
                    findings.push(finding);
                }
            }
            Problem::WrongType { field, reason } => {
                has_values = false;
                let field = field_of(&field, object);
                let value = object.pointer(&field.pointer());
                findings.push(Finding::decode_error(field, value, &reason));
            }
        }
    }
    (findings, has_values)
}

/// Findings about the values of an object that can be decoded.
fn value_findings(kind: BuiltInKind, object: &Value, old: Option<&Value>) -> Vec<Finding> {
    let change = old.and_then(|it| BuiltInChange::new(kind, object, it));
    let request = match &change {
        Some(it) => request(&it.new, Some(&it.old), FieldValidation::Ignore),
        None => request(object, None, FieldValidation::Ignore),
    };
    let answer = kind.answer(&request);
    let mut findings = match answer.verdict {
        Verdict::Accepted(_) => Vec::new(),
        Verdict::Undecodable { reason, .. } => vec![decode_finding(&reason, object)],
        Verdict::Invalid(findings) => findings,
    };
    for finding in &mut findings {
        // As in the texts of the API server.
        let has_value = !matches!(finding.kind, ErrorKind::Required | ErrorKind::Forbidden);
        if has_value
            && finding.value.is_none()
            && let Some(value) = object.pointer(&finding.field.pointer())
            && !value.is_object()
            && !value.is_array()
        {
            finding.value = Some(display_value(value));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{Release, check_built_in};
    use serde_json::{Value, json};

    /// The findings about a pod with a spec.
    fn findings(spec: &Value) -> Vec<String> {
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
        let findings = check_built_in(Release::NEWEST, &pod, None)
            .unwrap()
            .into_iter();
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
    fn fields_of_later_releases_are_unknown_and_named() {
        let spec = json!({
            "containers": [{"name": "a", "image": "b"}],
            "hostnameOverride": "a", "schedulingGroup": {"podGroupName": "a"}, "workloadRef": {},
        });
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
        for (release, expected) in [
            (
                "1.33",
                &[
                    (
                        "spec.hostnameOverride",
                        "; Kubernetes 1.34 and later have it",
                    ),
                    (
                        "spec.schedulingGroup",
                        "; Kubernetes 1.36 and later have it",
                    ),
                    ("spec.workloadRef", "; Kubernetes 1.35 has it"),
                ][..],
            ),
            ("1.37", &[("spec.workloadRef", "")]),
        ] {
            let findings = check_built_in(release.parse().unwrap(), &pod, None).unwrap();
            let texts = findings
                .iter()
                .map(|(_, it)| (it.field.text(), it.detail.to_string()));
            let expected = expected.iter().map(|(field, releases)| {
                let detail = format!("unknown field, which would be dropped{releases}");
                ((*field).to_owned(), detail)
            });
            assert_eq!(
                texts.collect::<Vec<_>>(),
                expected.collect::<Vec<_>>(),
                "{release}"
            );
        }
    }

    #[test]
    fn deprecated_versions_name_the_replacement() {
        let findings = |api_version: &str, kind: &str| {
            let object =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            let findings = check_built_in(Release::NEWEST, &object, None)
                .unwrap()
                .into_iter();
            let texts = findings.map(|(severity, it)| format!("{severity:?} {it}"));
            texts.collect::<Vec<_>>()
        };
        assert_eq!(
            findings("v1", "Endpoints"),
            [
                "Warning apiVersion: Invalid value: \"v1\": deprecated since Kubernetes 1.33; write discovery.k8s.io/v1 EndpointSlice [SC002]"
            ]
        );
    }

    #[test]
    fn values_of_patches_and_stored_objects_are_not_checked() {
        let spec = json!({"containers": [{"name": "a"}]});
        assert_eq!(
            findings(&spec),
            ["spec.containers[0].image: Required value [SC002]"]
        );
        let patch = json!({"containers": [{"name": "a", "$patch": "delete"}]});
        assert_eq!(findings(&patch), [""; 0]);
        let stored = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "b"}, "spec": spec});
        assert_eq!(
            check_built_in(Release::NEWEST, &stored, None)
                .unwrap()
                .len(),
            0
        );
    }

    /// Both versions have the fields that are validated, but for the metrics.
    #[test]
    fn autoscalers_of_both_versions_are_validated() {
        let texts = |api_version: &str, replicas: (i32, i32), metrics: (&str, Value)| {
            let mut autoscaler = json!({
                "apiVersion": api_version, "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
                "spec": {
                    "minReplicas": replicas.0, "maxReplicas": replicas.1,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
                },
            });
            autoscaler["spec"][metrics.0] = metrics.1;
            let findings = check_built_in(Release::NEWEST, &autoscaler, None)
                .unwrap()
                .into_iter();
            findings.map(|(_, it)| it.field.text()).collect::<Vec<_>>()
        };
        let percentage = ("targetCPUUtilizationPercentage", json!(50));
        let none = ("metrics", Value::Null);
        for (api_version, metrics) in [("autoscaling/v1", percentage), ("autoscaling/v2", none)] {
            assert_eq!(
                texts(api_version, (1, 3), metrics.clone()),
                [""; 0],
                "{api_version}"
            );
            let fields = ["spec.maxReplicas"];
            assert_eq!(texts(api_version, (3, 2), metrics), fields, "{api_version}");
        }
    }

    #[test]
    fn values_of_secrets_are_not_printed() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "A"}, "data": {"a": "hunter2!"},
        });
        for (_, finding) in check_built_in(Release::NEWEST, &secret, None).unwrap() {
            assert!(!finding.to_string().contains("hunter2"), "{finding}");
        }
    }

    #[test]
    fn other_kinds_are_not_checked() {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Pod", "spec": 1});
        assert!(check_built_in(Release::NEWEST, &object, None).is_none());
    }
}
