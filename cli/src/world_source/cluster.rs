//! Lists the objects of a cluster for a world.

use crate::check::cluster_list::{ListError, for_each_selected, is_served};
use kube::Client;
use lockkeeper_check::ListTarget;
use lockkeeper_explain::Project;
use serde_json::{Value, json};

/// Objects that the account may not list.
pub(crate) struct Note {
    /// The kind.
    pub(crate) plural: &'static str,
    pub(crate) text: String,
    /// Whether decisions need them.
    pub(crate) is_partial: bool,
}

/// A kind that is listed.
pub(crate) struct QueueKind {
    kind: &'static str,
    plural: &'static str,
    is_namespaced: bool,
    /// Whether answers need all objects of the kind.
    is_needed: bool,
}

pub(crate) const fn queue_kind(
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
const OTHER_KINDS: [(&str, QueueKind); 4] = [
    ("v1", queue_kind("Namespace", "namespaces", false, false)),
    (
        "scheduling.k8s.io/v1",
        queue_kind("PriorityClass", "priorityclasses", false, false),
    ),
    ("v1", queue_kind("LimitRange", "limitranges", true, false)),
    (
        "node.k8s.io/v1",
        queue_kind("RuntimeClass", "runtimeclasses", false, false),
    ),
];

/// The class of Kueue's workloads.
const KUEUE_CLASS: QueueKind = queue_kind(
    "WorkloadPriorityClass",
    "workloadpriorityclasses",
    false,
    false,
);

/// The kinds that placement on nodes depends on.
const BUDGET_KIND: QueueKind =
    queue_kind("PodDisruptionBudget", "poddisruptionbudgets", true, false);
const POD_KIND: QueueKind = queue_kind("Pod", "pods", true, false);
const NODE_KIND: QueueKind = queue_kind("Node", "nodes", false, false);

/// The declared kinds of jobs, which only manifests of such kinds need.
const JOB_KIND: QueueKind = queue_kind("JobKind", "jobkinds", false, false);

/// The versions of the API groups, the newest first.
const VERSIONS: [(Project, &str); 3] = [
    (Project::Lockkeeper, "lockkeeper.dev/v1alpha1"),
    (Project::Kueue, "kueue.x-k8s.io/v1beta2"),
    (Project::Kueue, "kueue.x-k8s.io/v1beta1"),
];

/// Consumes all objects that decisions depend on. Without the right to list a kind in all namespaces, only the objects of
/// `namespace` are listed. Returns what is missing.
pub(super) async fn list(
    client: &Client,
    namespace: &str,
    consume: &mut dyn FnMut(Value),
) -> Result<Vec<Note>, ListError> {
    let mut lister = Lister::new(client, namespace, consume);
    lister.is_for_answers = true;
    if lister.list_all(&OTHER_KINDS).await? {
        return Ok(lister.notes);
    }
    Err(ListError::Failed {
        what: "workloads".to_owned(),
        reason: "the cluster has neither lockkeeper's nor Kueue's CRDs; install one of them"
            .to_owned(),
    })
}

/// Consumes all objects of kinds, and those that decisions depend on, if the cluster has their kinds. Declared kinds of jobs,
/// nodes, pods and budgets are listed only if they are among the kinds. Returns what is missing.
pub(crate) async fn list_with(
    client: &Client,
    namespace: &str,
    kinds: &[(&str, QueueKind)],
    consume: &mut dyn FnMut(Value),
) -> Result<Vec<Note>, ListError> {
    let mut lister = Lister::new(client, namespace, consume);
    for (version, kind) in kinds {
        lister.list(version, kind).await?;
    }
    lister.list_all(&OTHER_KINDS).await?;
    Ok(lister.notes)
}

/// Lists kinds, and notes those that the account may not list.
struct Lister<'a> {
    client: &'a Client,
    namespace: &'a str,
    consume: &'a mut dyn FnMut(Value),
    notes: Vec<Note>,
    /// Whether declared kinds of jobs are listed, and nodes if a ClusterQueue places workloads on them.
    is_for_answers: bool,
    /// Whether a ClusterQueue places workloads on nodes.
    places_on_nodes: bool,
}

impl<'a> Lister<'a> {
    fn new(client: &'a Client, namespace: &'a str, consume: &'a mut dyn FnMut(Value)) -> Self {
        Self {
            client,
            namespace,
            consume,
            notes: Vec::new(),
            is_for_answers: false,
            places_on_nodes: false,
        }
    }

    /// Lists these kinds, and the queues and workloads of each project. Returns whether the cluster has a project.
    async fn list_all(&mut self, others: &[(&str, QueueKind)]) -> Result<bool, ListError> {
        for (version, kind) in others {
            self.list(version, kind).await?;
        }
        let mut is_found = false;
        let mut has_kueue = false;
        for (project, version) in VERSIONS {
            if project == Project::Kueue && has_kueue
                || !is_served(self.client, version, "workloads").await?
            {
                continue;
            }
            is_found = true;
            has_kueue |= project == Project::Kueue;
            match project {
                Project::Kueue => self.list(version, &KUEUE_CLASS).await?,
                Project::Lockkeeper => self.list_job_kinds(version).await?,
            }
            for kind in &QUEUE_KINDS {
                self.list(version, kind).await?;
                if kind.kind == "ClusterQueue" && self.is_for_answers && self.places_on_nodes {
                    self.list_nodes().await?;
                }
            }
        }
        Ok(is_found)
    }

    /// Lists the declared kinds of jobs. Without the right, a manifest of a declared kind is an error, and all other answers are complete.
    async fn list_job_kinds(&mut self, version: &str) -> Result<(), ListError> {
        let plural = JOB_KIND.plural;
        if self.is_for_answers && is_served(self.client, version, plural).await? {
            self.is_listed(version, &JOB_KIND, plural).await?;
        }
        Ok(())
    }

    /// Lists nodes with their pods and disruption budgets. Without the pods, nodes would seem to be free, so that they are not
    /// listed then.
    async fn list_nodes(&mut self) -> Result<(), ListError> {
        if self.is_listed("v1", &POD_KIND, POD_KIND.plural).await? {
            self.list("policy/v1", &BUDGET_KIND).await?;
            return self.list("v1", &NODE_KIND).await;
        }
        self.notes.push(Note {
            plural: POD_KIND.plural,
            text: "the account may not list pods in all namespaces, so nodes are not considered"
                .to_owned(),
            is_partial: false,
        });
        Ok(())
    }

    async fn list(&mut self, version: &str, kind: &QueueKind) -> Result<(), ListError> {
        if self.is_listed(version, kind, kind.plural).await? {
            return Ok(());
        }
        let own = format!("namespaces/{}/{}", self.namespace, kind.plural);
        let is_listed = kind.is_namespaced && self.is_listed(version, kind, &own).await?;
        let place = if is_listed {
            format!(" outside namespace {}", self.namespace)
        } else {
            String::new()
        };
        self.notes.push(Note {
            plural: kind.plural,
            text: format!("the account may not list {}{place}", kind.plural),
            is_partial: kind.is_needed,
        });
        Ok(())
    }

    /// Whether the account may list a path.
    async fn is_listed(
        &mut self,
        version: &str,
        kind: &QueueKind,
        path: &str,
    ) -> Result<bool, ListError> {
        let target = ListTarget {
            version,
            kind: kind.kind,
            plural: path,
        };
        let (consume, places_on_nodes) = (&mut *self.consume, &mut self.places_on_nodes);
        let consume = |object: Value| {
            *places_on_nodes |= object.pointer("/spec/placement/policy") == Some(&json!("Nodes"));
            consume(object);
        };
        match for_each_selected(self.client, &target, None, consume).await {
            Ok(_) => Ok(true),
            Err(ListError::Forbidden { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }
}
