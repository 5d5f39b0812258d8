//! The whole pipeline: defaults, schema and expressions, then the webhook.

use super::evaluate_case;
use crate::compare::{difference, expected_lines, finding_lines};
use json_patch::Patch;
use lockkeeper_policies::finding::Finding;
use lockkeeper_policies::kueue::structural_schema;
use lockkeeper_policies::schema::metadata;
use serde_json::{Value, json};

/// The kinds whose status is a subresource.
const WITH_STATUS: [&str; 4] = ["ClusterQueue", "Cohort", "LocalQueue", "Workload"];

/// The API server's message if it did not evaluate the CEL rules.
const NOT_CHECKED: &str = "some validation rules were not checked";

/// The differences of a case.
pub fn check(case: &Value) -> Vec<String> {
    let request = Request::from_case(case);
    let of_crd = request.schema_findings();
    let is_broken = case.get("mutatingError").is_some();
    if !of_crd.is_empty() {
        return match case["outcome"].as_str().unwrap() {
            "Invalid" => difference(&finding_lines(&of_crd), &expected_schema_errors(case)),
            _ if is_broken => Vec::new(),
            other => vec![format!(
                "expected {other}, found {:?}",
                finding_lines(&of_crd)
            )],
        };
    }
    let outcome = case["outcome"].as_str().unwrap();
    if outcome == "Invalid" {
        return difference(&[], &expected_schema_errors(case));
    }
    match evaluate_case(&request.to_webhook_case(case)) {
        Err(_) if is_broken => Vec::new(),
        Err(error) => vec![format!("cannot be decoded: {error}")],
        Ok(_) if is_broken => vec!["it can be decoded".to_owned()],
        Ok(verdict) => difference(
            &finding_lines(&verdict.denials),
            &expected_lines(&case["expectedErrors"]),
        ),
    }
}

/// The API server's message for a number that is too large; it names no field, and the number ends the text.
const TOO_LARGE: &str = "Checked value must be of type integer with format int32 in ";

fn expected_schema_errors(case: &Value) -> Vec<String> {
    let mut errors = case["expectedErrors"].as_array().unwrap().clone();
    let detail = |it: &Value| it["detail"].as_str().unwrap_or_default().to_owned();
    errors.retain(|it| !detail(it).starts_with(NOT_CHECKED));
    for error in &mut errors {
        if let Some(field) = detail(error).strip_prefix(TOO_LARGE) {
            error["field"] = field.into();
        }
    }
    expected_lines(&errors.into())
}

/// A request as the validation receives it.
struct Request<'a> {
    kind: &'a str,
    version: &'a str,
    object: Value,
    old: Option<Value>,
}

impl<'a> Request<'a> {
    fn from_case(case: &'a Value) -> Self {
        let kind = case["kind"].as_str().unwrap();
        let version = case["apiVersion"].as_str().unwrap();
        let version = version.split_once('/').unwrap().1;
        let structure = structural_schema(kind, version).unwrap();
        let ready = |object: &Value| {
            let mut object = object.clone();
            structure.prune(&mut object);
            structure.apply_defaults(&mut object);
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
        // Kueue's mutating webhook also writes the zero values of Go.
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

    /// The findings of the API server from the kind's CRD.
    fn schema_findings(&self) -> Vec<Finding> {
        let structure = structural_schema(self.kind, self.version).unwrap();
        let mut findings = Vec::new();
        if self.old.is_none() {
            let is_namespaced = matches!(self.kind, "LocalQueue" | "Workload");
            findings.extend(metadata(&self.object, is_namespaced));
        }
        findings.extend(structure.check(&self.object, self.old.as_ref()));
        findings
    }

    /// The request that the webhook receives.
    fn to_webhook_case(&self, case: &Value) -> Value {
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
