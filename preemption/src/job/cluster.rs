//! The state for job preemption: nodes and pods, quotas, and the job and quota of each pod.

use super::preemptibility::{ElasticDefaults, Preemptibility, PreemptionLabels};
use super::quota::{PodStage, QuotaId, QuotaLimits, QuotaTree};
use super::resource_list::ResourceList;
use crate::ids::{HostId, PodId, ResourceId, SymbolId};
use crate::placement::{Cluster, HostSpec, PodSpec, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// Pods that are admitted, placed and preempted for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobId {
    /// The pods of a namespace with the same value of the label `pod-group.scheduling.sigs.k8s.io`.
    Group {
        /// The namespace.
        namespace: SymbolId,
        /// The value of the label.
        name: SymbolId,
    },
    /// One pod without that label.
    Pod(PodId),
}

/// The job-related fields of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobPodSpec {
    /// Its quota; `None` means no limit.
    pub quota: Option<QuotaId>,
    /// The value of its job label; a pod without it is a job by itself.
    pub job: Option<SymbolId>,
    /// Its labels and policy about preemption.
    pub preemption_labels: PreemptionLabels,
    /// The node that is reserved for it (`status.nominatedNodeName`). Ignored for a running pod.
    pub nominated: Option<HostId>,
    /// Whether it is marked for soft eviction. A terminating pod counts as leaving as well.
    pub is_evicted: bool,
}

/// The declared size of a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GangSize {
    /// The minimum number of running pods.
    pub minimum: u32,
    /// The number of pods.
    pub total: u32,
}

/// The job-related state of a pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobPod {
    pub(super) quota: Option<QuotaId>,
    pub(super) job: JobId,
    pub(super) preemption_labels: PreemptionLabels,
    pub(super) preemptibility: Preemptibility,
    pub(super) nominated: Option<HostId>,
    /// It is terminating or marked for soft eviction.
    pub(super) is_leaving: bool,
    stage: PodStage,
}

/// Nodes, pods, jobs and quotas, kept up to date by events. An event costs a logarithm of the number of pods,
/// the pods of the node, and the depth of the quota tree.
#[derive(Clone, Debug, Default)]
pub struct JobCluster {
    elastic_defaults: ElasticDefaults,
    cluster: Cluster,
    quotas: QuotaTree,
    /// By pod id.
    members: Vec<Option<JobPod>>,
    jobs: BTreeMap<JobId, BTreeSet<PodId>>,
    gangs: BTreeMap<JobId, GangSize>,
    nominated: BTreeSet<PodId>,
    /// Pods that are terminating or marked for soft eviction.
    leaving: BTreeSet<PodId>,
}

impl JobCluster {
    /// An empty cluster.
    #[must_use]
    pub fn new(elastic_defaults: ElasticDefaults) -> Self {
        Self {
            elastic_defaults,
            ..Self::default()
        }
    }

    /// The preemption defaults.
    #[must_use]
    pub const fn elastic_defaults(&self) -> ElasticDefaults {
        self.elastic_defaults
    }

    /// The nodes and pods.
    #[must_use]
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The quotas.
    #[must_use]
    pub const fn quotas(&self) -> &QuotaTree {
        &self.quotas
    }

    /// The id of a resource.
    pub fn resource(&mut self, name: &str) -> ResourceId {
        self.cluster.resource(name)
    }

    /// Interns a string: a namespace or the name of a job.
    pub fn symbol(&mut self, text: &str) -> SymbolId {
        self.cluster.symbol(text)
    }

    /// The id of a node, whether or not the node exists yet.
    pub fn host_id(&mut self, name: &str) -> HostId {
        self.cluster.host_id(name)
    }

    /// Adds or updates a node.
    pub fn set_host(&mut self, spec: HostSpec<'_>) -> HostId {
        self.cluster.set_host(spec)
    }

    /// Removes a node.
    pub fn remove_host(&mut self, host: HostId) {
        self.cluster.remove_host(host);
    }

    /// Adds a quota below its parent.
    pub fn add_quota(&mut self, parent: Option<QuotaId>, limits: QuotaLimits) -> QuotaId {
        self.quotas.add(parent, limits)
    }

    /// Sets the declared size of a job.
    pub fn set_gang(&mut self, job: JobId, gang: GangSize) {
        self.gangs.insert(job, gang);
    }

    /// The id of a shape. See [`Cluster::shape`].
    pub fn shape(&mut self, shape: Shape) -> crate::ids::ShapeId {
        self.cluster.shape(shape)
    }

    /// Adds or updates a pod. A pod with a node is running or assumed there.
    pub fn set_pod(&mut self, spec: PodSpec<'_>, traits: JobPodSpec) -> PodId {
        let namespace = spec.namespace;
        let is_bound = spec.host.is_some();
        // A pending pod has no room that it could release.
        let is_leaving = is_bound && (spec.is_terminating || traits.is_evicted);
        // Subtracts the old requests from the quota; `Cluster::set_pod` below replaces them.
        if let Some(existing) = self.cluster.pod_id(namespace, spec.name) {
            self.remove_member(existing);
        }
        let id = self.cluster.set_pod(spec);
        let job = match traits.job {
            Some(name) => JobId::Group {
                namespace: self.cluster.symbol(namespace),
                name,
            },
            None => JobId::Pod(id),
        };
        let nominated = traits.nominated.filter(|_| !is_bound);
        let member = JobPod {
            quota: traits.quota,
            job,
            preemption_labels: traits.preemption_labels,
            preemptibility: self
                .elastic_defaults
                .preemptibility(traits.preemption_labels),
            nominated,
            is_leaving,
            // A nominated pod counts as used, like one that Koordinator's `Reserve` has assumed.
            stage: if is_bound || nominated.is_some() {
                PodStage::Placed
            } else {
                PodStage::Pending
            },
        };
        self.jobs.entry(job).or_default().insert(id);
        if member.nominated.is_some() {
            self.nominated.insert(id);
        }
        if member.is_leaving {
            self.leaving.insert(id);
        }
        if let Some(quota) = member.quota {
            let request = self.request(id);
            self.quotas
                .add_pod(quota, member.preemptibility, &request, member.stage);
        }
        if self.members.len() <= id.index() {
            self.members.resize(id.index().saturating_add(1), None);
        }
        if let Some(slot) = self.members.get_mut(id.index()) {
            *slot = Some(member);
        }
        id
    }

    /// Removes a pod.
    pub fn remove_pod(&mut self, id: PodId) {
        self.remove_member(id);
        self.cluster.remove_pod(id);
    }

    /// The pods of a job, by name.
    #[must_use]
    pub fn pods_of(&self, job: JobId) -> Vec<PodId> {
        let mut pods: Vec<PodId> = self.jobs.get(&job).into_iter().flatten().copied().collect();
        pods.sort_by_key(|id| self.sort_key(*id));
        pods
    }

    /// The job of a pod.
    #[must_use]
    pub fn job_of(&self, pod: PodId) -> Option<JobId> {
        self.member(pod).map(|it| it.job)
    }

    /// The requests of a pod that count against its quota. The number of pods does not.
    #[must_use]
    pub fn request(&self, pod: PodId) -> ResourceList {
        let requests = self.cluster.requests(pod).iter().copied();
        ResourceList::from_pairs(requests.filter(|(resource, _)| *resource != ResourceId::PODS))
    }

    /// The pods that are terminating or marked for soft eviction.
    pub fn leaving(&self) -> impl Iterator<Item = PodId> {
        self.leaving.iter().copied()
    }

    /// The pending pods that are nominated to a node.
    pub fn nominated(&self) -> impl Iterator<Item = (PodId, HostId)> {
        let all = self.nominated.iter();
        all.filter_map(|id| Some((*id, self.member(*id)?.nominated?)))
    }

    pub(super) fn member(&self, pod: PodId) -> Option<&JobPod> {
        self.members.get(pod.index())?.as_ref()
    }

    /// Whether a pod counts against a quota: its own quota is that one or a descendant.
    pub(super) fn counts_at(&self, pod: PodId, quota: QuotaId) -> bool {
        let own = self.member(pod).and_then(|it| it.quota);
        own.is_some_and(|own| self.quotas.is_within(own, quota))
    }

    pub(super) fn gang(&self, job: JobId) -> Option<GangSize> {
        self.gangs.get(&job).copied()
    }

    /// The order of pods with equal priority.
    pub(super) fn sort_key(&self, pod: PodId) -> (&str, &str, PodId) {
        let found = self.cluster.pod(pod);
        found.map_or(("", "", pod), |object| {
            (
                object.name(),
                self.cluster.symbols().text(object.namespace()),
                pod,
            )
        })
    }

    fn remove_member(&mut self, id: PodId) {
        let Some(member) = self.members.get_mut(id.index()).and_then(Option::take) else {
            return;
        };
        if let Some(quota) = member.quota {
            // Before the pod changes in `cluster`: these are the requests that were added.
            let request = self.request(id);
            self.quotas
                .remove_pod(quota, member.preemptibility, &request, member.stage);
        }
        self.nominated.remove(&id);
        self.leaving.remove(&id);
        if let Some(pods) = self.jobs.get_mut(&member.job) {
            pods.remove(&id);
            if pods.is_empty() {
                self.jobs.remove(&member.job);
                // The id of the pod may be reused.
                if let JobId::Pod(_) = member.job {
                    self.gangs.remove(&member.job);
                }
            }
        }
    }
}
