//! Findings about definitions: those of the Go library.

use super::answer_definition;
use crate::crd::request::{Body, FieldValidation, Request, Verdict};
use serde_json::{Value, json};

/// A definition, the stored definition or null, and the fields and reasons of the findings, as
/// `ValidateCustomResourceDefinition` of `k8s.io/apiextensions-apiserver` 0.37.1 returns them. A definition is the spec
/// without its names, followed by its status if that matters.
const RECORDED: &str = include_str!("recorded.jsonl");

fn definition(parts: &Value) -> Value {
    let mut spec = parts[0].clone();
    for (key, value) in [
        ("group", json!("example.com")),
        ("scope", json!("Namespaced")),
        (
            "names",
            json!({"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}),
        ),
    ] {
        spec[key] = value;
    }
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": spec,
    });
    if let Some(status) = parts.get(1) {
        definition["status"] = status.clone();
    }
    definition
}

#[test]
fn findings_are_those_of_the_go_library() {
    let mut differences = Vec::new();
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let new = definition(&case[0]);
        let mut old = (!case[1].is_null()).then(|| definition(&case[1]));
        if let Some(old) = &mut old
            && old.get("status").is_none()
        {
            old["status"] = json!({"storedVersions": ["v1"]});
        }
        let request = Request {
            body: Body::Object(&new),
            old: old.as_ref(),
            is_status: false,
            field_validation: FieldValidation::Ignore,
            namespace: "",
        };
        let mut found: Vec<String> = match &answer_definition(&request).verdict {
            Verdict::Accepted(_) => Vec::new(),
            Verdict::Undecodable { .. } => vec!["undecodable".to_owned()],
            Verdict::Invalid(findings) => findings
                .iter()
                .map(|it| format!("{} {}", it.field, it.kind.reason()))
                .collect(),
        };
        found.sort_unstable();
        if json!(found) != case[2] {
            differences.push(format!("{line}\n  found {found:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
