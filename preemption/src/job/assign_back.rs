//! Assigns removed pods back that fit beside the job.
//!
//! Source: the proposal, step 5 of `PostFilter` (R10): after all candidates were removed, those that fit beside the job
//! and within its quota stay. The proposal gives no order; here higher priority comes first, then the name, then the
//! namespace. Room and quota only shrink on the way, so a pod that was rejected once would be rejected at the end: no
//! single victim could have stayed.

use super::cluster::JobCluster;
use super::request::{NodeRequests, QuotaOveruse};
use super::trace::{AssignBackFailure, JobStep};
use crate::ids::{HostId, PodId};
use crate::placement::{FreeResources, Overlay, Pod};
use crate::trace::Trace;
use std::cmp::Reverse;

/// The nodes and quotas to which removed pods are assigned back.
pub(super) struct AssignBack<'a> {
    pub(super) state: &'a JobCluster,
    /// The resources that the job's pods request on their nodes. On other nodes, and for other resources, the job
    /// changes nothing, so they are not checked.
    pub(super) requests: &'a NodeRequests,
    /// The quotas that would exceed their max, with their usage without the removed pods.
    pub(super) overused: Vec<QuotaOveruse>,
}

impl AssignBack<'_> {
    /// Why a pod cannot be assigned back, if it cannot.
    fn find_conflict<R: FreeResources>(
        &self,
        room: &Overlay<'_, R>,
        pod: PodId,
        host: HostId,
    ) -> Option<AssignBackFailure> {
        let requests = self.state.cluster().requests(pod).iter();
        if let Some(shared) = self.requests.get(&host) {
            let checked = requests.filter(|(it, _)| shared.contains(it));
            let mut exceeding = checked.filter(|(it, request)| *request > room.free(host, *it));
            if let Some((resource, _)) = exceeding.next() {
                let resource = *resource;
                return Some(AssignBackFailure::NodeFull { resource });
            }
        }
        let quotas = self.state.quotas();
        let state = self.state;
        // Quotas within their max even with all pods are not in `overused`: no check needed.
        let mut counted = self
            .overused
            .iter()
            .filter(|it| state.counts_at(pod, it.quota));
        let over = counted.find(|overuse| {
            let used = overuse.used.plus(&self.state.request(pod));
            !used.fits(&quotas.limits(overuse.quota).max)
        });
        over.map(|it| AssignBackFailure::QuotaFull { quota: it.quota })
    }

    fn put_back<R: FreeResources>(&mut self, room: &mut Overlay<'_, R>, pod: PodId, host: HostId) {
        let state = self.state;
        if self.requests.contains_key(&host) {
            room.reserve(host, state.cluster().requests(pod));
        }
        for overuse in &mut self.overused {
            if state.counts_at(pod, overuse.quota) {
                overuse.used.add(&state.request(pod));
            }
        }
    }
}

/// Returns the victims among the removed pods, by name. Each pod must be listed once.
pub(super) fn assign_back<R: FreeResources>(
    mut returned: AssignBack<'_>,
    room: &mut Overlay<'_, R>,
    mut removed: Vec<(PodId, HostId)>,
    trace: &mut Trace<JobStep>,
) -> Vec<PodId> {
    let state = returned.state;
    let priority = |pod: PodId| state.cluster().pod(pod).map_or(0, Pod::priority);
    // The proposal gives no order: priority decides, then the name, then the namespace.
    removed.sort_by_cached_key(|(pod, _)| (Reverse(priority(*pod)), state.sort_key(*pod)));
    let mut victims = Vec::new();
    for (pod, host) in removed {
        match returned.find_conflict(room, pod, host) {
            None => {
                trace.record(|| JobStep::AssignedBack { pod });
                returned.put_back(room, pod, host);
            }
            Some(reason) => {
                trace.record(|| JobStep::Victim { pod, reason });
                victims.push(pod);
            }
        }
    }
    victims.sort_by_key(|pod| state.sort_key(*pod));
    victims
}
