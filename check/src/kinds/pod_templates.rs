//! Pod templates in Workloads, which the schemas of both projects' kind leave open.

use crate::definitions::shape_findings;
use crate::severity::Severity;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_policies::finding::Finding;
use serde_json::{Value, json};

/// The findings about unknown fields and values of a wrong type in the pod templates of a Workload; none for another kind.
///
/// Costs a copy of each template.
pub fn pod_template_findings(release: Release, object: &Value) -> Vec<(Severity, Finding)> {
    if object.get("kind").and_then(Value::as_str) != Some("Workload") {
        return Vec::new();
    }
    let pod_sets = object.pointer("/spec/podSets").and_then(Value::as_array);
    let pod_sets = pod_sets.into_iter().flatten().enumerate();
    let templates = pod_sets.filter_map(|(index, it)| Some((index, it.get("template")?)));
    templates
        .flat_map(|(index, template)| {
            let of = FieldPath::new("spec").field("podSets").index(index);
            let template = json!({"apiVersion": "v1", "kind": "PodTemplate", "template": template});
            let findings = shape_findings(release, &template).into_iter();
            findings.map(move |mut finding| {
                finding.field = of.clone().join(&finding.field);
                (Severity::Error, finding)
            })
        })
        .collect()
}
