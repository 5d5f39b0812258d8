//! Lists the objects of a cluster for a world.

use crate::check::cluster_list::{ListError, for_each_selected, is_served};
use kube::Client;
use lockkeeper_check::ListTarget;
use lockkeeper_explain::{Project, WorldBuilder};

/// A kind of queues or workloads.
struct QueueKind {
    kind: &'static str,
    plural: &'static str,
    is_namespaced: bool,
    /// Whether answers need all objects of the kind.
    is_needed: bool,
}

const fn queue_kind(
    kind: &'static str,
    plural: &'static str,
    is_namespaced: bool,
    is_needed: bool,
) -> QueueKind {
    QueueKind {
        kind,
        plural,
        is_namespaced,
        is_needed,
    }
}

/// The kinds of queues and workloads. Workloads come last, so that the quota in use is as recent as possible.
const QUEUE_KINDS: [QueueKind; 5] = [
    queue_kind("ClusterQueue", "clusterqueues", false, true),
    queue_kind("Cohort", "cohorts", false, true),
    queue_kind("ResourceFlavor", "resourceflavors", false, false),
    queue_kind("LocalQueue", "localqueues", true, true),
    queue_kind("Workload", "workloads", true, true),
];

/// Kinds that decisions depend on beside queues.
const OTHER_KINDS: [(&str, QueueKind); 2] = [
    ("v1", queue_kind("Namespace", "namespaces", false, false)),
    (
        "scheduling.k8s.io/v1",
        queue_kind("PriorityClass", "priorityclasses", false, false),
    ),
];

/// The class of Kueue's workloads.
const KUEUE_CLASS: QueueKind = queue_kind(
    "WorkloadPriorityClass",
    "workloadpriorityclasses",
    false,
    false,
);

/// The versions of the API groups, the newest first.
const VERSIONS: [(Project, &str); 3] = [
    (Project::Lockkeeper, "lockkeeper.dev/v1alpha1"),
    (Project::Kueue, "kueue.x-k8s.io/v1beta2"),
    (Project::Kueue, "kueue.x-k8s.io/v1beta1"),
];

/// Adds all objects that decisions depend on. Without the right to list a kind in all namespaces, only the objects of
/// `namespace` are added, and the builder notes what is missing.
pub(super) async fn list(
    client: &Client,
    namespace: &str,
    builder: &mut WorldBuilder,
) -> Result<(), ListError> {
    for (version, kind) in &OTHER_KINDS {
        add(client, namespace, builder, version, kind).await?;
    }
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
            add(client, namespace, builder, version, &KUEUE_CLASS).await?;
        }
        for kind in &QUEUE_KINDS {
            add(client, namespace, builder, version, kind).await?;
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
    namespace: &str,
    builder: &mut WorldBuilder,
    version: &str,
    kind: &QueueKind,
) -> Result<(), ListError> {
    let own = format!("namespaces/{namespace}/{}", kind.plural);
    let paths = if kind.is_namespaced {
        vec![kind.plural, own.as_str()]
    } else {
        vec![kind.plural]
    };
    let mut refused = None;
    for plural in paths {
        let target = ListTarget {
            version,
            kind: kind.kind,
            plural,
        };
        match for_each_selected(client, &target, None, |object| builder.add(object)).await {
            Ok(_) => {
                if refused.is_some() {
                    let text = format!(
                        "the account may list {} only in namespace {namespace}: the reason is that of the condition, and changes are not known",
                        kind.plural
                    );
                    builder.mark_partial(text);
                }
                return Ok(());
            }
            Err(error @ ListError::Forbidden { .. }) => refused = Some(error),
            Err(other) => return Err(other),
        }
    }
    let text = format!("the account may not list {}", kind.plural);
    if kind.is_needed {
        builder.mark_partial(format!(
            "{text}: the reason is that of the condition, and changes are not known"
        ));
    } else {
        builder.assume(text);
    }
    Ok(())
}
