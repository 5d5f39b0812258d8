//! The nodes as they would be without those that may be taken.

use super::class::Class;
use super::preempt::Asked;
use super::trace::{Removal, Step};
use super::world::{JobId, Member, World};
use crate::amount::Amount;
use crate::names::{HostId, PodId, ResourceId};
use crate::placement::{Cluster, Pod, Room, Row};
use crate::trace::Trace;
use std::collections::BTreeMap;

/// Whether a job of this priority may take a pod (R8): it is preemptible, of a lower priority, and does not
/// leave anyway.
pub(super) fn may_be_taken(member: &Member, pod: &Pod, priority: i32) -> bool {
    member.class == Class::Preemptible && pod.priority() < priority && !member.is_leaving
}

/// Takes pods from nodes for one job.
pub(super) struct Emptied<'a> {
    pub(super) world: &'a World,
    pub(super) job: JobId,
    pub(super) priority: i32,
    /// Those that were taken for a quota.
    pub(super) recycled: &'a BTreeMap<PodId, HostId>,
}

impl Emptied<'_> {
    /// What is free on nodes when those have gone that leave, those that were taken for a quota, and, if that is
    /// wished, all that may be taken; with what is held for other jobs taken off. Costs those pods; if all that
    /// may be taken go, the pods of the nodes.
    pub(super) fn free(&self, hosts: &[HostId], takes_all: bool) -> Free<'_> {
        let cluster = self.world.cluster();
        let mut more = vec![Row::new(); cluster.hosts_len()];
        let mut gone = |host: HostId, pod: PodId| {
            if let Some(more) = more.get_mut(host.index()) {
                more.add(cluster.requests(pod));
            }
        };
        for (pod, host) in self.recycled {
            gone(*host, *pod);
        }
        for pod in self.world.leaving() {
            if let Some(host) = cluster.pod(pod).and_then(Pod::host) {
                gone(host, pod);
            }
        }
        for host in hosts.iter().filter(|_| takes_all) {
            let pods = cluster.host(*host).map_or(&[][..], |it| it.pods());
            for pod in pods.iter().filter(|it| self.may_be_taken(**it)) {
                if !self.recycled.contains_key(pod) {
                    gone(*host, *pod);
                }
            }
        }
        for (pod, host) in self.world.nominated() {
            let known = cluster.pod(pod);
            let is_heeded = known.is_some_and(|it| it.priority() >= self.priority);
            if is_heeded
                && self.world.job_of(pod) != Some(self.job)
                && let Some(more) = more.get_mut(host.index())
            {
                more.take(cluster.requests(pod));
            }
        }
        Free { cluster, more }
    }

    /// Who was taken from these nodes beside those that were taken for a quota.
    pub(super) fn removed(&self, hosts: &Asked, trace: &mut Trace<Step>) -> Vec<(PodId, HostId)> {
        let mut removed = Vec::new();
        for id in hosts.keys() {
            let host = *id;
            let pods = self.world.cluster().host(host);
            for pod in pods.map_or(&[][..], |it| it.pods()) {
                if self.may_be_taken(*pod) && !self.recycled.contains_key(pod) {
                    let (pod, reason) = (*pod, Removal::Node);
                    trace.note(|| Step::Removed { pod, host, reason });
                    removed.push((pod, host));
                }
            }
        }
        removed
    }

    fn may_be_taken(&self, pod: PodId) -> bool {
        let known = self.world.member(pod).zip(self.world.cluster().pod(pod));
        known.is_some_and(|(member, it)| may_be_taken(member, it, self.priority))
    }
}

/// What is free on nodes.
pub(super) struct Free<'a> {
    cluster: &'a Cluster,
    /// By node, how much more than now.
    more: Vec<Row>,
}

impl Room for Free<'_> {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        let more = self.more.get(host.index());
        let more = more.map_or(Amount::ZERO, |row| row.get(resource));
        self.cluster.free(host, resource).plus(more)
    }
}
