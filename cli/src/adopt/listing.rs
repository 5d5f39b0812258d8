//! Lists the objects of a cluster.

use super::objects::{ClusterObjects, ListedJob};
use super::selection::Selection;
use crate::check::cluster_list::{ListError, for_each_selected, is_served};
use kube::Client;
use lockkeeper_api::JobKind;
use lockkeeper_check::ListTarget;
use lockkeeper_controller::job_adapters::JobKinds;
use serde::de::DeserializeOwned;
use serde_json::Value;

const OWN: &str = "lockkeeper.dev/v1alpha1";

/// The kinds of jobs of the cluster. A declaration with mistakes is left out, as by the controller.
pub(crate) async fn list_job_kinds(client: &Client) -> Result<JobKinds, ListError> {
    let mut kinds = JobKinds::default();
    if is_served(client, OWN, "jobkinds").await? {
        let declared: Vec<JobKind> = typed(client, OWN, "JobKind", "jobkinds").await?;
        for declaration in &declared {
            let _ = kinds.declare_object(declaration);
        }
    }
    Ok(kinds)
}

/// Lists the selected jobs, and all objects that their quota depends on.
pub(crate) async fn list(
    client: &Client,
    selection: &Selection,
    selector: Option<&str>,
) -> Result<ClusterObjects, ListError> {
    let mut jobs = Vec::new();
    for kind in selection.kinds() {
        list_jobs(client, kind, selection, selector, &mut jobs).await?;
    }
    let objects = list_cluster(client).await?;
    Ok(ClusterObjects { jobs, ..objects })
}

/// Lists all objects that the quota of jobs depends on, without the jobs.
pub(crate) async fn list_cluster(client: &Client) -> Result<ClusterObjects, ListError> {
    let scheduling = "scheduling.k8s.io/v1";
    Ok(ClusterObjects {
        jobs: Vec::new(),
        cluster_queues: typed(client, OWN, "ClusterQueue", "clusterqueues").await?,
        cohorts: typed(client, OWN, "Cohort", "cohorts").await?,
        flavors: typed(client, OWN, "ResourceFlavor", "resourceflavors").await?,
        local_queues: typed(client, OWN, "LocalQueue", "localqueues").await?,
        priority_classes: typed(client, scheduling, "PriorityClass", "priorityclasses").await?,
        namespaces: typed(client, "v1", "Namespace", "namespaces").await?,
        limit_ranges: typed(client, "v1", "LimitRange", "limitranges").await?,
        runtime_classes: typed(client, "node.k8s.io/v1", "RuntimeClass", "runtimeclasses").await?,
        // Last, so that the quota in use is as recent as possible.
        workloads: typed(client, OWN, "Workload", "workloads").await?,
    })
}

/// Adds the selected jobs of a kind; none if the cluster does not have the kind.
async fn list_jobs(
    client: &Client,
    kind: usize,
    selection: &Selection,
    selector: Option<&str>,
    out: &mut Vec<ListedJob>,
) -> Result<(), ListError> {
    let Some(of) = selection.job_kinds.get(kind) else {
        return Ok(());
    };
    let resource = of.resource();
    let version = resource.api_version();
    let path = match &selection.namespace {
        Some(namespace) => format!("namespaces/{namespace}/{}", resource.plural),
        None => resource.plural.to_string(),
    };
    let target = ListTarget {
        version: &version,
        kind: &resource.kind,
        plural: &path,
    };
    // An API server without the kind rejects the list of an account that lacks the permission.
    if !of.is_built_in() && !is_served(client, &version, &resource.plural).await? {
        return Ok(());
    }
    let keep = |object: Value| out.push(ListedJob { kind, object });
    for_each_selected(client, &target, selector, keep).await?;
    Ok(())
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
