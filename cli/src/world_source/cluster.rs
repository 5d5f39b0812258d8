//! Lists the objects of a cluster for a world.

use crate::check::cluster_list::{ListError, for_each_selected, is_served};
use kube::Client;
use lockkeeper_check::ListTarget;
use lockkeeper_explain::{Project, WorldBuilder};

/// The kinds of queues and workloads, by resource name. Workloads come last, so that the quota in use is as recent as
/// possible.
const QUEUE_KINDS: [(&str, &str); 5] = [
    ("ClusterQueue", "clusterqueues"),
    ("Cohort", "cohorts"),
    ("ResourceFlavor", "resourceflavors"),
    ("LocalQueue", "localqueues"),
    ("Workload", "workloads"),
];

/// The versions of the API groups, the newest first.
const VERSIONS: [(Project, &str); 3] = [
    (Project::Lockkeeper, "lockkeeper.dev/v1alpha1"),
    (Project::Kueue, "kueue.x-k8s.io/v1beta2"),
    (Project::Kueue, "kueue.x-k8s.io/v1beta1"),
];

/// Adds all objects that decisions depend on. Kinds that the account may not list are noted as an assumption.
pub(super) async fn list(client: &Client, builder: &mut WorldBuilder) -> Result<(), ListError> {
    add(client, builder, "v1", "Namespace", "namespaces").await?;
    add(
        client,
        builder,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "priorityclasses",
    )
    .await?;
    let mut is_found = false;
    let mut has_kueue = false;
    for (project, version) in VERSIONS {
        if project == Project::Kueue && has_kueue
            || !is_served(client, version, "workloads").await?
        {
            continue;
        }
        is_found = true;
        has_kueue |= project == Project::Kueue;
        if project == Project::Kueue {
            add(
                client,
                builder,
                version,
                "WorkloadPriorityClass",
                "workloadpriorityclasses",
            )
            .await?;
        }
        for (kind, plural) in QUEUE_KINDS {
            add(client, builder, version, kind, plural).await?;
        }
    }
    if is_found {
        return Ok(());
    }
    Err(ListError::Failed {
        what: "workloads".to_owned(),
        reason: "the cluster has neither lockkeeper's nor Kueue's CRDs; install one of them"
            .to_owned(),
    })
}

async fn add(
    client: &Client,
    builder: &mut WorldBuilder,
    version: &str,
    kind: &str,
    plural: &str,
) -> Result<(), ListError> {
    let target = ListTarget {
        version,
        kind,
        plural,
    };
    match for_each_selected(client, &target, None, |object| builder.add(object)).await {
        Ok(_) => Ok(()),
        Err(ListError::Forbidden { what, .. }) => {
            builder.assume(format!(
                "the account may not list {what}, so none of them is known"
            ));
            Ok(())
        }
        Err(other) => Err(other),
    }
}
