//! Lets off who need not go.
//!
//! Source: the proposal, step 5 of `PostFilter` (R10): everybody was taken who might be; whoever fits beside the
//! job stays, within the job's quota. The proposal gives no order; here the higher priority comes first, then the
//! name, then the namespace. Room and quota only become less on the way, so whoever was refused once would be
//! refused in the end: no single victim could have stayed.

use super::preempt::{Asked, Over};
use super::trace::{InTheWay, Step};
use super::world::World;
use crate::names::{HostId, PodId};
use crate::placement::{Overlay, Pod, Room};
use crate::trace::Trace;
use std::cmp::Reverse;

/// What those that were taken come back to.
pub(super) struct Returned<'a> {
    pub(super) world: &'a World,
    /// What pods of the job ask for, on the nodes where they go. Elsewhere, and of all else, there is as much
    /// as before, and be it too little.
    pub(super) used: &'a Asked,
    /// The quotas that would pass their max, with what is used of them when all have gone that were taken.
    pub(super) over: Vec<Over>,
}

impl Returned<'_> {
    /// Why a pod cannot come back, if it cannot.
    fn in_the_way<R: Room>(
        &self,
        room: &Overlay<'_, R>,
        pod: PodId,
        host: HostId,
    ) -> Option<InTheWay> {
        let requests = self.world.cluster().requests(pod).iter();
        if let Some(wanted) = self.used.get(&host) {
            let wanted = requests.filter(|(it, _)| wanted.contains(it));
            let mut short = wanted.filter(|(it, asked)| *asked > room.free(host, *it));
            if let Some((resource, _)) = short.next() {
                let resource = *resource;
                return Some(InTheWay::NoRoom { resource });
            }
        }
        let quotas = self.world.quotas();
        let world = self.world;
        let mut counted = self.over.iter().filter(|it| world.counts_at(pod, it.quota));
        let over = counted.find(|it| {
            let used = it.used.plus(&self.world.request(pod));
            !used.fits(&quotas.limits(it.quota).max)
        });
        over.map(|it| InTheWay::NoQuota { quota: it.quota })
    }

    fn put_back<R: Room>(&mut self, room: &mut Overlay<'_, R>, pod: PodId, host: HostId) {
        let world = self.world;
        if self.used.contains_key(&host) {
            room.take(host, world.cluster().requests(pod));
        }
        for it in &mut self.over {
            if world.counts_at(pod, it.quota) {
                it.used.add(&world.request(pod));
            }
        }
    }
}

/// Of those that were taken, who goes; by name. Each must be named once.
pub(super) fn assign_back<R: Room>(
    mut returned: Returned<'_>,
    room: &mut Overlay<'_, R>,
    mut removed: Vec<(PodId, HostId)>,
    trace: &mut Trace<Step>,
) -> Vec<PodId> {
    let world = returned.world;
    let priority = |pod: PodId| world.cluster().pod(pod).map_or(0, Pod::priority);
    removed.sort_by_cached_key(|(pod, _)| (Reverse(priority(*pod)), world.name_of(*pod)));
    let mut victims = Vec::new();
    for (pod, host) in removed {
        match returned.in_the_way(room, pod, host) {
            None => {
                trace.note(|| Step::AssignedBack { pod });
                returned.put_back(room, pod, host);
            }
            Some(why) => {
                trace.note(|| Step::Victim { pod, why });
                victims.push(pod);
            }
        }
    }
    victims.sort_by_key(|pod| world.name_of(*pod));
    victims
}
