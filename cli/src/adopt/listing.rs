//! Lists the objects of a cluster.

use super::objects::ClusterObjects;
use super::selection::Selection;
use crate::check::cluster_list::{ListError, for_each_selected};
use kube::Client;
use lockkeeper_check::ListTarget;
use serde::de::DeserializeOwned;
use serde_json::Value;

const OWN: &str = "lockkeeper.dev/v1alpha1";

/// Lists the selected Jobs, and all objects that their quota depends on.
pub(crate) async fn list(
    client: &Client,
    selection: &Selection,
    selector: Option<&str>,
) -> Result<ClusterObjects, ListError> {
    let path = match &selection.namespace {
        Some(namespace) => format!("namespaces/{namespace}/jobs"),
        None => "jobs".to_owned(),
    };
    let jobs = ListTarget {
        version: "batch/v1",
        kind: "Job",
        plural: &path,
    };
    let mut objects = ClusterObjects::default();
    let keep = |it: Value| objects.jobs.push(it);
    for_each_selected(client, &jobs, selector, keep).await?;
    objects.cluster_queues = typed(client, OWN, "ClusterQueue", "clusterqueues").await?;
    objects.cohorts = typed(client, OWN, "Cohort", "cohorts").await?;
    objects.flavors = typed(client, OWN, "ResourceFlavor", "resourceflavors").await?;
    objects.local_queues = typed(client, OWN, "LocalQueue", "localqueues").await?;
    let scheduling = "scheduling.k8s.io/v1";
    objects.priority_classes =
        typed(client, scheduling, "PriorityClass", "priorityclasses").await?;
    objects.namespaces = typed(client, "v1", "Namespace", "namespaces").await?;
    // Last, so that the quota in use is as recent as possible.
    objects.workloads = typed(client, OWN, "Workload", "workloads").await?;
    Ok(objects)
}

async fn typed<T: DeserializeOwned>(
    client: &Client,
    version: &str,
    kind: &str,
    plural: &str,
) -> Result<Vec<T>, ListError> {
    let target = ListTarget {
        version,
        kind,
        plural,
    };
    let mut out = Vec::new();
    let keep = |mut object: Value| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        out.extend(serde_json::from_value(object).ok());
    };
    for_each_selected(client, &target, None, keep).await?;
    Ok(out)
}
