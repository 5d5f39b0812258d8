//! Cases in the form of `crdcheck`: a request and the response of the API server.

use serde_json::{Map, Value, json};

use crate::client::Response;

/// What an API server adds to each stored object.
const SYSTEM_FIELDS: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// A case without its response.
pub struct CaseRequest<'a> {
    pub seed: u64,
    /// The definition of the object's kind; none for a definition.
    pub definition: Option<&'a Value>,
    pub object: &'a Value,
    /// The stored object of an update.
    pub old: Option<&'a Value>,
    pub is_status: bool,
    pub field_validation: &'static str,
}

/// The case of a request and its response.
pub fn case(request: &CaseRequest<'_>, response: &Response) -> Value {
    let mut case = json!({
        "seed": request.seed,
        "kind": request.object["kind"],
        "version": "v1",
        "operation": if request.old.is_some() { "UPDATE" } else { "CREATE" },
        "fieldValidation": request.field_validation,
        "object": request.object,
        "stage": stage(response),
        "outcome": outcome(response),
    });
    if let Some(definition) = request.definition {
        case["definition"] = definition.clone();
    }
    if let Some(old) = request.old {
        case["oldObject"] = old.clone();
    }
    if request.is_status {
        case["subresource"] = "status".into();
    }
    if (200..300).contains(&response.status) {
        case["defaulted"] = without_system_fields(&response.body);
    }
    case
}

fn stage(response: &Response) -> String {
    match response.status {
        200 | 201 => "accepted".to_owned(),
        400 => "decode".to_owned(),
        422 => "validate".to_owned(),
        other => format!("status {other}"),
    }
}

fn outcome(response: &Response) -> Value {
    let mut outcome = Map::new();
    outcome.insert("code".to_owned(), response.status.into());
    if !response.warnings.is_empty() {
        outcome.insert("warnings".to_owned(), json!(response.warnings));
    }
    let body = &response.body;
    if response.status >= 300 {
        match body["details"]["causes"].as_array() {
            Some(causes) => outcome.insert("causes".to_owned(), json!(causes)),
            None => outcome.insert("message".to_owned(), body["message"].clone()),
        };
    }
    if response.status == 400 {
        let strict = strict_problems(response.message());
        outcome.insert("strict".to_owned(), strict);
    }
    outcome.into()
}

/// The unknown and duplicate fields in the message of a strict decoder.
fn strict_problems(message: &str) -> Value {
    let mut problems: Vec<Value> = Vec::new();
    for problem in ["unknown", "duplicate"] {
        for part in message.split(&format!("{problem} field \"")).skip(1) {
            let field = part.split('"').next().unwrap_or_default();
            problems.push(json!({"field": field, "problem": problem}));
        }
    }
    problems.into()
}

/// The object without what the API server adds.
pub fn without_system_fields(object: &Value) -> Value {
    let mut out = object.clone();
    if let Some(metadata) = out["metadata"].as_object_mut() {
        for name in SYSTEM_FIELDS {
            metadata.remove(name);
        }
    }
    // The times of conditions.
    let conditions = out.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if object["kind"] == "CustomResourceDefinition"
            && let Some(fields) = condition.as_object_mut()
        {
            fields.remove("lastTransitionTime");
        }
    }
    out
}
