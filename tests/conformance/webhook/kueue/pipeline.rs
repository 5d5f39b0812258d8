//! The whole pipeline: defaults, schema and expressions, then the webhook.

use super::by_rules;
use crate::compare::{difference, expected, found};
use json_patch::Patch;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::kueue::structure;
use lockkeeper_policies::structure::metadata;
use serde_json::{Value, json};

/// The kinds whose status is a subresource.
const WITH_STATUS: [&str; 4] = ["ClusterQueue", "Cohort", "LocalQueue", "Workload"];

/// What the API server says when it did not ask the expressions.
const NOT_ASKED: &str = "some validation rules were not checked";

/// What differs in a case.
pub fn check(case: &Value) -> Vec<String> {
    let request = Request::of(case);
    let of_crd = request.of_crd();
    let is_broken = case.get("mutatingError").is_some();
    if !of_crd.is_empty() {
        return match case["outcome"].as_str().unwrap() {
            "Invalid" => difference(&found(&of_crd), &expected_of_crd(case)),
            _ if is_broken => Vec::new(),
            other => vec![format!("expected {other}, found {:?}", found(&of_crd))],
        };
    }
    let outcome = case["outcome"].as_str().unwrap();
    if outcome == "Invalid" {
        return difference(&[], &expected_of_crd(case));
    }
    match by_rules(&request.as_case(case)) {
        Err(_) if is_broken => Vec::new(),
        Err(error) => vec![format!("cannot be read: {error}")],
        Ok(_) if is_broken => vec!["it can be read".to_owned()],
        Ok(verdict) => difference(&found(&verdict.denials), &expected(&case["expectedErrors"])),
    }
}

/// What it says of a number that is too large, without a field: that is the end of the text.
const TOO_LARGE: &str = "Checked value must be of type integer with format int32 in ";

fn expected_of_crd(case: &Value) -> Vec<String> {
    let mut errors = case["expectedErrors"].as_array().unwrap().clone();
    let detail = |it: &Value| it["detail"].as_str().unwrap_or_default().to_owned();
    errors.retain(|it| !detail(it).starts_with(NOT_ASKED));
    for error in &mut errors {
        if let Some(field) = detail(error).strip_prefix(TOO_LARGE) {
            error["field"] = field.into();
        }
    }
    expected(&errors.into())
}

/// A request as it reaches the checks.
struct Request<'a> {
    kind: &'a str,
    version: &'a str,
    object: Value,
    old: Option<Value>,
}

impl<'a> Request<'a> {
    fn of(case: &'a Value) -> Self {
        let kind = case["kind"].as_str().unwrap();
        let version = case["apiVersion"].as_str().unwrap();
        let version = version.split_once('/').unwrap().1;
        let structure = structure(kind, version).unwrap();
        let ready = |object: &Value| {
            let mut object = object.clone();
            structure.prune(&mut object);
            structure.fill(&mut object);
            object
        };
        let old = case.get("oldObject").map(ready);
        let mut object = case["object"].clone();
        let is_of_status = case["subresource"] == "status";
        if let Some(old) = &old
            && is_of_status
        {
            let status = object["status"].take();
            object = old.clone();
            object["status"] = status;
        } else if WITH_STATUS.contains(&kind) {
            let status = old.as_ref().map(|it| it["status"].clone());
            match status.filter(|it| !it.is_null()) {
                Some(status) => object["status"] = status,
                None => drop(object.as_object_mut().unwrap().remove("status")),
            }
        }
        object = ready(&object);
        // Kueue's mutating webhook writes out the zero values of Go, too.
        let patch = case.get("mutatingPatch").filter(|it| it.is_array());
        if let Some(patch) = patch {
            let patch: Patch = serde_json::from_value(patch.clone()).unwrap();
            json_patch::patch(&mut object, &patch).unwrap();
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
            object = ready(&object);
        }
        Self {
            kind,
            version,
            object,
            old,
        }
    }

    /// What the API server finds by the kind's definition.
    fn of_crd(&self) -> Vec<Finding> {
        let structure = structure(self.kind, self.version).unwrap();
        let mut findings = Vec::new();
        if self.old.is_none() {
            let is_namespaced = matches!(self.kind, "LocalQueue" | "Workload");
            findings.extend(metadata(&self.object, is_namespaced));
        }
        findings.extend(structure.check(&self.object, self.old.as_ref()));
        findings
    }

    /// What the webhook is sent.
    fn as_case(&self, case: &Value) -> Value {
        let mut out = json!({
            "kind": case["kind"], "operation": case["operation"],
            "featureGates": case["featureGates"], "object": self.object,
        });
        if let Some(old) = &self.old {
            out["oldObject"] = old.clone();
        }
        out
    }
}
