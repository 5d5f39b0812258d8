//! Lets off who need not go.
//!
//! Source: the proposal, step 5 of `PostFilter` (R10): everybody was taken who might be; whoever fits beside the
//! job stays, within the job's quota. The proposal gives no order; here the higher priority comes first, then the
//! name, then the namespace. Room and quota only become less on the way, so whoever was refused once would be
//! refused in the end: no single victim could have stayed.

use super::cluster::JobCluster;
use super::request::{NodeRequests, QuotaOveruse};
use super::trace::{AssignBackFailure, JobStep};
use crate::ids::{HostId, PodId};
use crate::placement::{FreeResources, Overlay, Pod};
use crate::trace::Trace;
use std::cmp::Reverse;

/// What those that were taken come back to.
pub(super) struct AssignBack<'a> {
    pub(super) state: &'a JobCluster,
    /// What pods of the job ask for, on the nodes where they go. Elsewhere, and of all else, there is as much
    /// as before, and be it too little.
    pub(super) requests: &'a NodeRequests,
    /// The quotas that would pass their max, with what is used of them when all have gone that were taken.
    pub(super) overused: Vec<QuotaOveruse>,
}

impl AssignBack<'_> {
    /// Why a pod cannot come back, if it cannot.
    fn find_conflict<R: FreeResources>(
        &self,
        room: &Overlay<'_, R>,
        pod: PodId,
        host: HostId,
    ) -> Option<AssignBackFailure> {
        let requests = self.state.cluster().requests(pod).iter();
        if let Some(wanted) = self.requests.get(&host) {
            let wanted = requests.filter(|(it, _)| wanted.contains(it));
            let mut short = wanted.filter(|(it, asked)| *asked > room.free(host, *it));
            if let Some((resource, _)) = short.next() {
                let resource = *resource;
                return Some(AssignBackFailure::NodeFull { resource });
            }
        }
        let quotas = self.state.quotas();
        let world = self.state;
        let mut counted = self
            .overused
            .iter()
            .filter(|it| world.counts_at(pod, it.quota));
        let over = counted.find(|it| {
            let used = it.used.plus(&self.state.request(pod));
            !used.fits(&quotas.limits(it.quota).max)
        });
        over.map(|it| AssignBackFailure::QuotaFull { quota: it.quota })
    }

    fn put_back<R: FreeResources>(&mut self, room: &mut Overlay<'_, R>, pod: PodId, host: HostId) {
        let world = self.state;
        if self.requests.contains_key(&host) {
            room.reserve(host, world.cluster().requests(pod));
        }
        for it in &mut self.overused {
            if world.counts_at(pod, it.quota) {
                it.used.add(&world.request(pod));
            }
        }
    }
}

/// Of those that were taken, who goes; by name. Each must be named once.
pub(super) fn assign_back<R: FreeResources>(
    mut returned: AssignBack<'_>,
    room: &mut Overlay<'_, R>,
    mut removed: Vec<(PodId, HostId)>,
    trace: &mut Trace<JobStep>,
) -> Vec<PodId> {
    let world = returned.state;
    let priority = |pod: PodId| world.cluster().pod(pod).map_or(0, Pod::priority);
    removed.sort_by_cached_key(|(pod, _)| (Reverse(priority(*pod)), world.sort_key(*pod)));
    let mut victims = Vec::new();
    for (pod, host) in removed {
        match returned.find_conflict(room, pod, host) {
            None => {
                trace.record(|| JobStep::AssignedBack { pod });
                returned.put_back(room, pod, host);
            }
            Some(why) => {
                trace.record(|| JobStep::Victim { pod, reason: why });
                victims.push(pod);
            }
        }
    }
    victims.sort_by_key(|pod| world.sort_key(*pod));
    victims
}
