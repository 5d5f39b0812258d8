//! Inputs of the reconciler.

use super::declared_job_kind::DefinitionCheck;
use super::output::{WriteId, WriteResult};
use super::status::conditions::has_status;
use crate::job_adapters::{JobKinds, JobView, strip_template};
use crate::key::{Kind, ObjectKey};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use lockkeeper_api::workload::WorkloadStatus;
use lockkeeper_api::{ClusterQueue, Cohort, JobKind, LocalQueue, ResourceFlavor, Workload, labels};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// A watch event, as in kube's watcher.
#[derive(Clone, Debug)]
pub enum Change<T> {
    /// The object exists, in this version.
    Applied(T),
    /// The object was deleted.
    Deleted(ObjectKey),
}

/// One input.
#[derive(Clone, Debug)]
pub enum Input {
    /// A ClusterQueue.
    ClusterQueue(Change<Box<ClusterQueue>>),
    /// A Cohort.
    Cohort(Change<Box<Cohort>>),
    /// A LocalQueue.
    LocalQueue(Change<Box<LocalQueue>>),
    /// A `ResourceFlavor`.
    ResourceFlavor(Change<Box<ResourceFlavor>>),
    /// A PriorityClass.
    PriorityClass(Change<Box<PriorityClass>>),
    /// A namespace.
    Namespace(Change<Box<Namespace>>),
    /// A `LimitRange`.
    LimitRange(Change<Box<LimitRange>>),
    /// A `RuntimeClass`.
    RuntimeClass(Change<Box<RuntimeClass>>),
    /// A workload.
    Workload(Change<Box<Workload>>),
    /// A `PodGroup`.
    PodGroup(Change<Box<PodGroup>>),
    /// A job with a queue label; the number is the index of its kind.
    Job(usize, Change<Box<JobView>>),
    /// A declaration of a kind of jobs.
    JobKind(Change<Box<JobKind>>),
    /// The declaration of a kind of jobs was compared with the definition of the kind.
    DefinitionChecked {
        /// The name of the `JobKind`.
        job_kind: String,
        /// The revision of the declaration.
        revision: u64,
        /// The result.
        check: DefinitionCheck,
    },
    /// A node.
    Node(Change<Box<Node>>),
    /// A pod that is bound to a node and has not ended; any other counts as deleted.
    BoundPod(Change<Box<Pod>>),
    /// A disruption budget.
    DisruptionBudget(Change<Box<PodDisruptionBudget>>),
    /// An object that cannot be decoded, with the error.
    Unreadable(Kind, ObjectKey, String),
    /// The list of a kind is complete; objects missing from it were reported as deleted. The list must have begun after
    /// the last `Leadership(true)`.
    Listed(Kind),
    /// The versions of a kind went back, as after etcd was restored from a backup: versions that were seen or written
    /// before are not newer.
    Restored(Kind),
    /// The result of a write.
    WriteFinished(WriteId, WriteResult),
    /// The cluster has this kind; its objects will be listed.
    KindAvailable(Kind),
    /// The cluster does not have this kind.
    KindMissing(Kind),
    /// The controller may not list this kind of jobs. Only declared kinds are affected: decisions do not wait for their list, so
    /// that one declaration without a role does not stop all queues.
    KindForbidden(Kind),
    /// Whether this process is the leader from now on, and may write. A new leader writes nothing until every kind was
    /// listed again: its watches may be behind the writes of the former leader.
    Leadership(bool),
}

impl Input {
    /// Like [`Self::applied_with`], without declared kinds of jobs.
    #[must_use]
    pub fn applied(kind: Kind, name: ObjectKey, object: Value) -> Self {
        Self::applied_with(&JobKinds::default(), kind, name, object)
    }

    /// Decodes an object from the API server. Pod templates are stripped to the fields that decisions use.
    #[must_use]
    pub fn applied_with(kinds: &JobKinds, kind: Kind, name: ObjectKey, object: Value) -> Self {
        let decoded = match kind {
            Kind::ClusterQueue => decode(object).map(|it| Self::ClusterQueue(Change::Applied(it))),
            Kind::Cohort => decode(object).map(|it| Self::Cohort(Change::Applied(it))),
            Kind::LocalQueue => decode(object).map(|it| Self::LocalQueue(Change::Applied(it))),
            Kind::ResourceFlavor => {
                decode(object).map(|it| Self::ResourceFlavor(Change::Applied(it)))
            }
            Kind::PriorityClass => {
                decode(object).map(|it| Self::PriorityClass(Change::Applied(it)))
            }
            Kind::Namespace => decode(object).map(|it| Self::Namespace(Change::Applied(it))),
            Kind::LimitRange => decode(object).map(|it| Self::LimitRange(Change::Applied(it))),
            Kind::RuntimeClass => decode(object).map(|it| Self::RuntimeClass(Change::Applied(it))),
            Kind::Workload => decode(object)
                .map(|it| Self::Workload(Change::Applied(Box::new(strip_workload(*it))))),
            Kind::PodGroup => decode(object).map(|it| Self::PodGroup(Change::Applied(it))),
            Kind::JobKind => decode(object).map(|it| Self::JobKind(Change::Applied(it))),
            Kind::Job(at) => {
                parse_job(kinds, at, object).map(|it| Self::Job(at, Change::Applied(it)))
            }
            Kind::Node => decode(object).map(|it| Self::Node(Change::Applied(it))),
            Kind::BoundPod => decode(object).map(|it| Self::BoundPod(Change::Applied(it))),
            Kind::DisruptionBudget => {
                decode(object).map(|it| Self::DisruptionBudget(Change::Applied(it)))
            }
        };
        decoded.unwrap_or_else(|error| Self::Unreadable(kind, name, error))
    }

    /// The input for a deleted object.
    #[must_use]
    pub fn deleted(kind: Kind, name: ObjectKey) -> Self {
        match kind {
            Kind::ClusterQueue => Self::ClusterQueue(Change::Deleted(name)),
            Kind::Cohort => Self::Cohort(Change::Deleted(name)),
            Kind::LocalQueue => Self::LocalQueue(Change::Deleted(name)),
            Kind::ResourceFlavor => Self::ResourceFlavor(Change::Deleted(name)),
            Kind::PriorityClass => Self::PriorityClass(Change::Deleted(name)),
            Kind::Namespace => Self::Namespace(Change::Deleted(name)),
            Kind::LimitRange => Self::LimitRange(Change::Deleted(name)),
            Kind::RuntimeClass => Self::RuntimeClass(Change::Deleted(name)),
            Kind::Workload => Self::Workload(Change::Deleted(name)),
            Kind::PodGroup => Self::PodGroup(Change::Deleted(name)),
            Kind::JobKind => Self::JobKind(Change::Deleted(name)),
            Kind::Job(at) => Self::Job(at, Change::Deleted(name)),
            Kind::Node => Self::Node(Change::Deleted(name)),
            Kind::BoundPod => Self::BoundPod(Change::Deleted(name)),
            Kind::DisruptionBudget => Self::DisruptionBudget(Change::Deleted(name)),
        }
    }
}

/// Removes the fields that the reconciler does not read, to save memory.
fn strip_workload(mut workload: Workload) -> Workload {
    if let Some(own) = &mut workload.metadata.labels {
        own.retain(|key, _| key == labels::JOB_UID || key == labels::POD_GROUP_NAME);
    }
    if let Some(own) = &mut workload.metadata.annotations {
        own.retain(|key, _| key == labels::ADOPTION);
    }
    workload.metadata.annotations = workload.metadata.annotations.filter(|it| !it.is_empty());
    if has_status(&workload, "Finished", "True") {
        // Finished workloads stay until they are deleted; only their condition is read.
        workload.spec.pod_sets = Vec::new();
        if let Some(status) = &mut workload.status {
            *status = WorkloadStatus {
                conditions: std::mem::take(&mut status.conditions),
                ..WorkloadStatus::default()
            };
            status.conditions.retain(|it| it.type_ == "Finished");
        }
    }
    for pod_set in &mut workload.spec.pod_sets {
        let template = Arc::unwrap_or_clone(std::mem::take(&mut pod_set.template));
        pod_set.template = Arc::new(strip_template(template));
    }
    workload
}

fn parse_job(kinds: &JobKinds, at: usize, object: Value) -> Result<Box<JobView>, String> {
    let read = kinds.parse(at, object).map(Box::new);
    read.map_err(|error| error.to_string())
}

fn decode<T: DeserializeOwned>(object: Value) -> Result<Box<T>, String> {
    let read = serde_json::from_value(object).map(Box::new);
    read.map_err(|error| error.to_string())
}
