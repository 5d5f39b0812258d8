//! What identifies an object.

use crate::project::Project;
use crate::world::{JobFacts, JobKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::{Workload, labels};
use lockkeeper_preemption::{State, WorkloadId};
use serde_json::Value;

/// Kueue's label of a job with the name of its queue.
const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// The label of a job with the name of its queue.
pub(crate) const fn queue_label(project: Project) -> &'static str {
    match project {
        Project::Lockkeeper => labels::QUEUE_NAME,
        Project::Kueue => KUEUE_QUEUE,
    }
}

/// The name, with the namespace if there is one.
pub(crate) fn qualified_name(metadata: &ObjectMeta) -> String {
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        None | Some("") => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    }
}

/// The job that controls a workload, as `Kind/name`.
pub(crate) fn controlling_job(workload: &Workload) -> Option<String> {
    let owners = workload.metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|it| it.controller == Some(true));
    owners.next().map(|it| format!("{}/{}", it.kind, it.name))
}

/// The ClusterQueue of a workload; empty without one.
pub(crate) fn queue_name(state: &State, workload: WorkloadId) -> String {
    let queue = state.workload_view(workload).queue();
    queue.map_or_else(String::new, |it| state.node_view(it).name().to_owned())
}

/// Group, kind and name of an object, for messages.
pub(crate) struct Identity {
    pub(crate) group: String,
    pub(crate) kind: String,
    namespace: String,
    /// With the namespace, if it has one.
    pub(crate) name: String,
}

impl Identity {
    pub(crate) fn of(object: &Value) -> Self {
        // Without JSON pointers, which are parsed each time.
        let text = |of: Option<&Value>, key: &str| -> String {
            let value = of.and_then(|it| it.get(key)).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let metadata = object.get("metadata");
        let version = text(Some(object), "apiVersion");
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
        Self {
            group: group.to_owned(),
            kind: text(Some(object), "kind"),
            name: if namespace.is_empty() {
                name
            } else {
                format!("{namespace}/{name}")
            },
            namespace,
        }
    }
}

/// The facts about a job or pod that explain why it has no workload.
pub(crate) fn job_facts(object: &Value, identity: &Identity) -> Option<(JobKey, JobFacts)> {
    if identity.kind.is_empty() || identity.kind == "List" {
        return None;
    }
    let labels = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let label = |key: &str| labels.and_then(|it| it.get(key)).and_then(Value::as_str);
    let name = object.pointer("/metadata/name").and_then(Value::as_str)?;
    let is_job = ["Job", "JobSet", "Pod"].contains(&identity.kind.as_str());
    let queue = label(labels::QUEUE_NAME).or_else(|| label(KUEUE_QUEUE));
    (is_job || queue.is_some()).then(|| {
        let key = JobKey {
            kind: identity.kind.to_lowercase(),
            namespace: identity.namespace.clone(),
            name: name.to_owned(),
        };
        (
            key,
            JobFacts {
                queue: queue.map(str::to_owned),
            },
        )
    })
}

/// Calls `consume` with an object, or with each item of a list.
pub fn for_each_item(mut object: Value, consume: &mut dyn FnMut(Value)) {
    match object.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => {
            for item in std::mem::take(items) {
                for_each_item(item, consume);
            }
        }
        None => consume(object),
    }
}
