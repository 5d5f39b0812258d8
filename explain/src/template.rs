//! Pod templates reduced to the fields that decisions read, and stored once.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::inter_pod_fields::selected_label_keys;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The fields of a pod spec that decisions read.
const SPEC_FIELDS: [&str; 10] = [
    "affinity",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priorityClassName",
    "resources",
    "runtimeClassName",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
];

/// The fields of a container that decisions read.
const CONTAINER_FIELDS: [&str; 3] = ["name", "resources", "restartPolicy"];

/// The domains of labels that decisions read.
const LABEL_DOMAINS: [&str; 3] = [
    "lockkeeper.dev/",
    "kueue.x-k8s.io/",
    "quota.scheduling.koordinator.sh/",
];

/// Removes all fields that no decision reads: commands, environment, volumes, annotations.
pub(crate) fn reduce(template: &mut Value) {
    let Some(template) = template.as_object_mut() else {
        return;
    };
    template.retain(|key, _| key == "metadata" || key == "spec");
    let selected = selected_labels(template);
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| key == "labels");
        if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            labels.retain(|key, _| {
                LABEL_DOMAINS.iter().any(|it| key.starts_with(it)) || selected.contains(key)
            });
        }
    }
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        reduce_pod_spec(spec, &[]);
    }
}

/// The labels that the pod affinity and the topology spread of a template select.
fn selected_labels(template: &Map<String, Value>) -> BTreeSet<String> {
    let spec = template
        .get("spec")
        .filter(|it| it.get("affinity").is_some() || it.get("topologySpreadConstraints").is_some());
    // A template that cannot be decoded is reported when it is read.
    let spec = spec.and_then(|it| PodSpec::deserialize(it).ok());
    let keys = spec.as_ref().map(selected_label_keys);
    let keys = keys.into_iter().flatten();
    keys.map(str::to_owned).collect()
}

/// Removes all fields of a pod spec that no decision reads, but keeps `others`.
pub(crate) fn reduce_pod_spec(spec: &mut Map<String, Value>, others: &[&str]) {
    spec.retain(|key, _| {
        let is_read = SPEC_FIELDS.contains(&key.as_str()) || others.contains(&key.as_str());
        is_read || key == "containers" || key == "initContainers"
    });
    for key in ["containers", "initContainers"] {
        let containers = spec.get_mut(key).and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            container.retain(|key, _| CONTAINER_FIELDS.contains(&key.as_str()));
        }
    }
}

/// The most templates that are looked up. A process that watches for long would otherwise keep those of all past workloads.
const TEMPLATES_MAX: usize = 100_000;

/// Equal templates, stored once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Templates {
    by_text: HashMap<String, Arc<PodTemplateSpec>>,
}

impl Templates {
    /// Sets the templates of all pod sets, in order. The error says which field cannot be decoded.
    pub(crate) fn set(
        &mut self,
        workload: &mut Workload,
        templates: Vec<Value>,
    ) -> Result<(), String> {
        for (pod_set, template) in workload.spec.pod_sets.iter_mut().zip(templates) {
            let decoded = self.decode(template);
            pod_set.template = decoded.map_err(|error| format!("spec.podSets: {error}"))?;
        }
        Ok(())
    }

    /// Reduces and decodes a template.
    fn decode(&mut self, mut template: Value) -> Result<Arc<PodTemplateSpec>, serde_json::Error> {
        reduce(&mut template);
        let text = template.to_string();
        if let Some(known) = self.by_text.get(&text) {
            return Ok(Arc::clone(known));
        }
        if self.by_text.len() >= TEMPLATES_MAX {
            // Those in use stay shared; only later equal ones are stored again.
            self.by_text.clear();
        }
        let decoded: Arc<PodTemplateSpec> = Arc::new(serde_json::from_value(template)?);
        self.by_text.insert(text, Arc::clone(&decoded));
        Ok(decoded)
    }
}

/// Takes the templates of all pod sets out of a Workload, in order.
pub(crate) fn take_templates(workload: &mut Value) -> Vec<Value> {
    let pod_sets = workload
        .pointer_mut("/spec/podSets")
        .and_then(Value::as_array_mut);
    let pod_sets = pod_sets.into_iter().flatten();
    let templates = pod_sets.map(|it| match it.get_mut("template") {
        Some(template) => std::mem::replace(template, Value::Object(Map::new())),
        None => Value::Object(Map::new()),
    });
    templates.collect()
}
