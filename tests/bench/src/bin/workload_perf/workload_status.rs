//! The fields of a workload that are decoded; the rest is skipped, because the benchmark shares the CPU with the controller
//! that it measures.

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Deserialize)]
pub struct WorkloadStatusView {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Value>,
}

impl WorkloadStatusView {
    pub fn conditions(&self) -> &[Value] {
        &self.status.conditions
    }

    pub fn is(&self, of: &str) -> bool {
        let mut conditions = self.conditions().iter();
        conditions.any(|it| it["type"] == of && it["status"] == "True")
    }
}

fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        name: Option<String>,
        resource_version: Option<String>,
        labels: Option<BTreeMap<String, String>>,
    }
    let metadata = Metadata::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: metadata.name,
        resource_version: metadata.resource_version,
        labels: metadata.labels,
        ..ObjectMeta::default()
    })
}

impl Resource for WorkloadStatusView {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Cow::Borrowed("Workload")
    }

    fn group((): &()) -> Cow<'_, str> {
        Cow::Borrowed("lockkeeper.dev")
    }

    fn version((): &()) -> Cow<'_, str> {
        Cow::Borrowed("v1alpha1")
    }

    fn plural((): &()) -> Cow<'_, str> {
        Cow::Borrowed("workloads")
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
