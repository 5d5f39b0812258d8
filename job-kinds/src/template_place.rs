//! The places of pod templates in a job, and the templates of pods without one.

use serde_json::{Map, Value, json};

/// The place of a template in the declaration and in the job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TemplatePlace {
    /// The index of the pod sets in the declaration.
    pub(crate) source: usize,
    /// The item: an index, a key, or null without `forEach`.
    pub(crate) item: Value,
    /// The requests of a pod, if it has no template.
    pub(crate) requests: Option<Map<String, Value>>,
}

/// The pod template of pods without one: its node selector and tolerations, and a container with the requests.
pub(crate) fn template_of_fields(fields: &Value, requests: &Map<String, Value>) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "resources": {"requests": requests}}]});
    for name in ["nodeSelector", "tolerations"] {
        if let (Some(value), Some(spec)) = (fields.get(name), spec.as_object_mut()) {
            spec.insert(name.to_owned(), value.clone());
        }
    }
    json!({"spec": spec})
}
