//! The nodes as they would be without those that may be taken.

use super::class::Class;
use super::preempt::Asked;
use super::trace::{Removal, Step};
use super::world::{JobId, Member, World};
use crate::amount::Amount;
use crate::names::{HostId, PodId, ResourceId};
use crate::placement::{Pod, Room, Row};
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
    /// wished, all that may be taken; with what is held for other jobs taken off. Costs the pods of the nodes.
    pub(super) fn free(&self, hosts: &[HostId], takes_all: bool) -> Free {
        let cluster = self.world.cluster();
        let mut free = vec![Row::new(); cluster.hosts_len()];
        for id in hosts {
            let (Some(host), Some(slot)) = (cluster.host(*id), free.get_mut(id.index())) else {
                continue;
            };
            *slot = host.free().clone();
            for pod in host.pods() {
                let Some(member) = self.world.member(*pod) else {
                    continue;
                };
                if member.is_leaving
                    || takes_all && self.may_be_taken(*pod)
                    || self.recycled.contains_key(pod)
                {
                    slot.add(cluster.requests(*pod));
                }
            }
        }
        for (pod, host) in self.world.nominated() {
            let known = cluster.pod(pod);
            let is_heeded = known.is_some_and(|it| it.priority() >= self.priority);
            if is_heeded
                && self.world.job_of(pod) != Some(self.job)
                && let Some(slot) = free.get_mut(host.index())
            {
                slot.take(cluster.requests(pod));
            }
        }
        Free(free)
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

/// What is free on each node, by its number.
pub(super) struct Free(Vec<Row>);

impl Room for Free {
    fn free(&self, host: HostId, resource: ResourceId) -> Amount {
        let row = self.0.get(host.index());
        row.map_or(Amount::ZERO, |row| row.get(resource))
    }
}
