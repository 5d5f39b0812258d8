//! The free resources of nodes without candidates and leaving pods.

use super::cluster::{JobCluster, JobId, JobPod};
use super::preemptibility::Preemptibility;
use super::request::NodeRequests;
use super::trace::{JobStep, RemovalReason};
use crate::amount::Amount;
use crate::ids::{HostId, PodId, ResourceId};
use crate::placement::{Cluster, FreeResources, Pod, ResourceVec};
use crate::trace::Trace;
use std::collections::BTreeMap;

/// Whether a pod is a candidate for a job of this priority (R8): preemptible, of lower priority, and not leaving
/// already.
pub(super) fn is_candidate(member: &JobPod, pod: &Pod, priority: i32) -> bool {
    member.preemptibility == Preemptibility::Preemptible
        && pod.priority() < priority
        && !member.is_leaving
}

/// Simulates the removal of pods for one job.
pub(super) struct SimulatedRemoval<'a> {
    pub(super) state: &'a JobCluster,
    pub(super) job: JobId,
    pub(super) priority: i32,
    /// The pods that were removed for a quota.
    pub(super) removed_for_quota: &'a BTreeMap<PodId, HostId>,
}

impl SimulatedRemoval<'_> {
    /// The free resources without leaving pods, without pods removed for a quota, and optionally without all
    /// candidates, less the room of nominated pods of other jobs. Costs these pods; with all candidates, the pods of
    /// the nodes.
    pub(super) fn free_after_removal(
        &self,
        hosts: &[HostId],
        removes_candidates: bool,
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
        // Candidates on excluded nodes stay: their removal would make no node feasible.
        for host in hosts.iter().filter(|_| removes_candidates) {
            let pods = cluster.host(*host).map_or(&[][..], |it| it.pods());
            for pod in pods.iter().filter(|it| self.is_candidate_pod(**it)) {
                if !self.removed_for_quota.contains_key(pod) {
                    gone(*host, *pod);
                }
            }
        }
        for (pod, host) in self.state.nominated() {
            let nominee = cluster.pod(pod);
            // A nominated pod of lower priority loses its room to this job.
            let is_respected = nominee.is_some_and(|it| it.priority() >= self.priority);
            if is_respected
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

    /// The candidates on these nodes that were not removed for a quota.
    pub(super) fn removed_pods(
        &self,
        hosts: &NodeRequests,
        trace: &mut Trace<JobStep>,
    ) -> Vec<(PodId, HostId)> {
        let mut removed = Vec::new();
        // Only nodes of the placement: on others no pod needs to be preempted.
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

/// The free resources after a simulated removal.
pub(super) struct FreeAfterRemoval<'a> {
    cluster: &'a Cluster,
    /// The additional free resources by node; negative where nominated pods need more than is released.
    freed: Vec<ResourceVec>,
}

impl FreeResources for FreeAfterRemoval<'_> {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        let more = self.freed.get(host.index());
        let more = more.map_or(Amount::ZERO, |row| row.get(resource));
        self.cluster.free(host, resource).plus(more)
    }
}
