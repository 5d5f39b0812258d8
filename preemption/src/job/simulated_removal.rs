//! The nodes as they would be without those that may be taken.

use super::cluster::{JobCluster, JobId, JobPod};
use super::preemptibility::Preemptibility;
use super::request::NodeRequests;
use super::trace::{JobStep, RemovalReason};
use crate::amount::Amount;
use crate::ids::{HostId, PodId, ResourceId};
use crate::placement::{Cluster, FreeResources, Pod, ResourceVec};
use crate::trace::Trace;
use std::collections::BTreeMap;

/// Whether a job of this priority may take a pod (R8): it is preemptible, of a lower priority, and does not
/// leave anyway.
pub(super) fn is_candidate(member: &JobPod, pod: &Pod, priority: i32) -> bool {
    member.preemptibility == Preemptibility::Preemptible
        && pod.priority() < priority
        && !member.is_leaving
}

/// Takes pods from nodes for one job.
pub(super) struct SimulatedRemoval<'a> {
    pub(super) state: &'a JobCluster,
    pub(super) job: JobId,
    pub(super) priority: i32,
    /// Those that were taken for a quota.
    pub(super) removed_for_quota: &'a BTreeMap<PodId, HostId>,
}

impl SimulatedRemoval<'_> {
    /// What is free on nodes when those have gone that leave, those that were taken for a quota, and, if that is
    /// wished, all that may be taken; with what is held for other jobs taken off. Costs those pods; if all that
    /// may be taken go, the pods of the nodes.
    pub(super) fn free_after_removal(
        &self,
        hosts: &[HostId],
        takes_all: bool,
    ) -> FreeAfterRemoval<'_> {
        let cluster = self.state.cluster();
        let mut more = vec![ResourceVec::new(); cluster.hosts_len()];
        let mut gone = |host: HostId, pod: PodId| {
            if let Some(more) = more.get_mut(host.index()) {
                more.add(cluster.requests(pod));
            }
        };
        for (pod, host) in self.removed_for_quota {
            gone(*host, *pod);
        }
        for pod in self.state.leaving() {
            if let Some(host) = cluster.pod(pod).and_then(Pod::host) {
                gone(host, pod);
            }
        }
        for host in hosts.iter().filter(|_| takes_all) {
            let pods = cluster.host(*host).map_or(&[][..], |it| it.pods());
            for pod in pods.iter().filter(|it| self.is_candidate_pod(**it)) {
                if !self.removed_for_quota.contains_key(pod) {
                    gone(*host, *pod);
                }
            }
        }
        for (pod, host) in self.state.nominated() {
            let known = cluster.pod(pod);
            let is_heeded = known.is_some_and(|it| it.priority() >= self.priority);
            if is_heeded
                && self.state.job_of(pod) != Some(self.job)
                && let Some(more) = more.get_mut(host.index())
            {
                more.subtract(cluster.requests(pod));
            }
        }
        FreeAfterRemoval {
            cluster,
            freed: more,
        }
    }

    /// Who was taken from these nodes beside those that were taken for a quota.
    pub(super) fn removed_pods(
        &self,
        hosts: &NodeRequests,
        trace: &mut Trace<JobStep>,
    ) -> Vec<(PodId, HostId)> {
        let mut removed = Vec::new();
        for id in hosts.keys() {
            let host = *id;
            let pods = self.state.cluster().host(host);
            for pod in pods.map_or(&[][..], |it| it.pods()) {
                if self.is_candidate_pod(*pod) && !self.removed_for_quota.contains_key(pod) {
                    let (pod, reason) = (*pod, RemovalReason::Node);
                    trace.record(|| JobStep::Removed { pod, host, reason });
                    removed.push((pod, host));
                }
            }
        }
        removed
    }

    fn is_candidate_pod(&self, pod: PodId) -> bool {
        let known = self.state.member(pod).zip(self.state.cluster().pod(pod));
        known.is_some_and(|(member, it)| is_candidate(member, it, self.priority))
    }
}

/// What is free on nodes.
pub(super) struct FreeAfterRemoval<'a> {
    cluster: &'a Cluster,
    /// By node, how much more than now.
    freed: Vec<ResourceVec>,
}

impl FreeResources for FreeAfterRemoval<'_> {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        let more = self.freed.get(host.index());
        let more = more.map_or(Amount::ZERO, |row| row.get(resource));
        self.cluster.free(host, resource).plus(more)
    }
}
