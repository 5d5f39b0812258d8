//! One round: who goes so that a whole job finds a place, and where its pods go.
//!
//! Source: the proposal, `PostFilter` (R5–R14). In the order in which it happens:
//!
//! 1. **Rounds in flight.** A job whose last victims have not gone begins no other.
//! 2. **The job.** All its pods agree on quota, class and priority; it is a gang without spare pods, and whole.
//! 3. **Trigger and quota gate**, by labels, policy and the sums of the job.
//! 4. **Recycling.** Where a quota would pass its max, all that count against it and may be taken are, on whatever
//!    node: preemptible, and of a lower priority.
//! 5. **Placement.** Each pod without a place, by name, on the first node that has room. If they do not all find
//!    one, all that may be taken are, from each node in question, and it is tried once more. If one finds none
//!    then, nothing happens to anybody.
//! 6. **Assign-back** (`assign_back`).
//!
//! What the proposal leaves open: whether the job might not fit as things are; pods that leave anyway count as
//! gone, and need not be told again; a node that is held for a pod of another job counts as used if that job is
//! not of a lower priority. Pods of a quota above are taken only where that one would pass its max.

use super::admission::{Admission, admission};
use super::assign_back::{Returned, assign_back};
use super::class::{Class, VictimAction};
use super::emptied::{Emptied, may_be_taken};
use super::in_flight::{Blocked, InFlight};
use super::quota::QuotaId;
use super::resources::Resources;
use super::trace::{Removal, Step};
use super::world::{Gang, JobId, Member, World};
use crate::names::{HostId, PodId, ResourceId, ShapeId};
use crate::placement::{Overlay, Pod, Strategy, place};
use crate::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};

/// What comes of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The job gets places. Only now does anything happen.
    Preempt(Plan),
    /// It gets none, and nothing happens to anybody.
    Refused(Refusal),
}

/// What is to be done, all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The node of each pod that had none, by name of the pod.
    pub nominations: Vec<(PodId, HostId)>,
    /// Who goes, by name. There may be nobody: then the job fits as things are.
    pub victims: Vec<PodId>,
    /// What becomes of them.
    pub action: VictimAction,
    /// Who leaves anyway and must have gone before the job fits.
    pub leaving: Vec<PodId>,
}

impl Plan {
    /// All that the job waits for, as [`InFlight::begin`] wants it.
    pub fn awaited(&self) -> impl Iterator<Item = PodId> {
        self.victims.iter().chain(&self.leaving).copied()
    }
}

/// Why a job gets no places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Rounds are in flight.
    Blocked(Blocked),
    /// It has no pods, or its pods differ in quota, class or priority.
    Mixed,
    /// It may run with fewer pods than it has, or some of its pods are not there yet.
    NotWhole {
        /// How its owner declares it.
        gang: Gang,
        /// How many pods are there.
        pods: usize,
    },
    /// Labels or policy forbid it to trigger preemption.
    MayNotTrigger,
    /// Its quota or one above forbids it.
    Quota(Admission),
    /// With all gone that may be taken a quota would still pass its max.
    OverMax {
        /// The quota.
        quota: QuotaId,
    },
    /// With all gone that may be taken one of its pods fits nowhere.
    NoPlace {
        /// The first such pod.
        pod: PodId,
    },
}

/// What the pods of a job agree on.
struct Job {
    quota: Option<QuotaId>,
    class: Class,
    priority: i32,
    may_trigger: bool,
    /// Those without a place, by name.
    pending: Vec<(PodId, ShapeId)>,
    /// What pods ask for that the quota does not count yet.
    uncounted: Resources,
}

/// Plans a round for a job at a time, in seconds. `excluded` are nodes where it cannot go whoever leaves
/// (`UnschedulableAndUnresolvable`), beside those that its pods' own requirements exclude.
///
/// Nodes are tried in the order of the cluster. Costs the pods of all nodes, and for each different shape of the
/// job's pods the nodes.
#[must_use]
pub fn plan(
    world: &World,
    rounds: &InFlight,
    job: JobId,
    excluded: &BTreeSet<HostId>,
    now_s: i64,
    trace: &mut Trace<Step>,
) -> Outcome {
    let planned = Round { world, excluded }.plan(rounds, job, now_s, trace);
    planned.map_or_else(Outcome::Refused, Outcome::Preempt)
}

/// By node, the resources that pods of the job ask for there.
pub(super) type Asked = BTreeMap<HostId, BTreeSet<ResourceId>>;

/// A quota that would pass its max, and what is used of it in the round.
#[derive(Clone, Debug)]
pub(super) struct Over {
    pub(super) quota: QuotaId,
    pub(super) used: Resources,
}

struct Round<'a> {
    world: &'a World,
    excluded: &'a BTreeSet<HostId>,
}

impl Round<'_> {
    fn plan(
        &self,
        rounds: &InFlight,
        id: JobId,
        now_s: i64,
        trace: &mut Trace<Step>,
    ) -> Result<Plan, Refusal> {
        if let Some(blocked) = rounds.blocked(id, now_s) {
            trace.note(|| Step::Blocked(blocked));
            return Err(Refusal::Blocked(blocked));
        }
        let job = self.job(id, trace)?;
        let may = job.may_trigger;
        trace.note(|| Step::Trigger { may });
        if !may {
            return Err(Refusal::MayNotTrigger);
        }
        self.gate(&job, trace)?;
        let mut over = self.over_max(&job, trace);
        let recycled = self.recycled(&job, &mut over, trace)?;
        let hosts = self.hosts(trace);
        let emptied = Emptied {
            world: self.world,
            job: id,
            priority: job.priority,
            recycled: &recycled,
        };
        let shapes: Vec<ShapeId> = job.pending.iter().map(|(_, shape)| *shape).collect();
        let cluster = self.world.cluster();
        let as_it_is = emptied.free(&hosts, false);
        let mut room = Overlay::new(&as_it_is);
        let mut placement = place(cluster, &mut room, &hosts, &shapes, Strategy::FirstFit);
        let fits = placement.iter().all(Option::is_some);
        trace.note(|| Step::AsItIs { fits });
        let without_victims;
        if !fits {
            without_victims = emptied.free(&hosts, true);
            room = Overlay::new(&without_victims);
            placement = place(cluster, &mut room, &hosts, &shapes, Strategy::FirstFit);
        }
        let nominations = nominations(&job, placement, trace)?;
        let used = self.asked_of(&nominations);
        let mut removed = Vec::new();
        if !fits {
            removed = emptied.removed(&used, trace);
        }
        removed.extend(recycled.iter().map(|(pod, host)| (*pod, *host)));
        let returned = Returned {
            world: self.world,
            used: &used,
            over,
        };
        let victims = assign_back(returned, &mut room, removed, trace);
        Ok(Plan {
            leaving: self.leaving_on(&used),
            nominations,
            victims,
            action: self.world.switches().victim_action(),
        })
    }

    /// What its pods agree on, and who of them has a place.
    fn job(&self, id: JobId, trace: &mut Trace<Step>) -> Result<Job, Refusal> {
        let pods = self.world.pods_of(id);
        if let Some(gang) = self.world.gang(id)
            && (gang.minimum != gang.total || usize::try_from(gang.total) != Ok(pods.len()))
        {
            let pods = pods.len();
            return Err(Refusal::NotWhole { gang, pods });
        }
        let switches = self.world.switches();
        let mut job: Option<Job> = None;
        for pod in pods {
            let Some((member, known)) = self.known(pod) else {
                continue;
            };
            let job = job.get_or_insert_with(|| Job {
                quota: member.quota,
                class: member.class,
                priority: known.priority(),
                may_trigger: true,
                pending: Vec::new(),
                uncounted: Resources::default(),
            });
            if (member.quota, member.class, known.priority())
                != (job.quota, job.class, job.priority)
            {
                return Err(Refusal::Mixed);
            }
            job.may_trigger &= switches.may_trigger(member.says);
            if let Some(host) = known.host() {
                trace.note(|| Step::Placed { pod, host });
                continue;
            }
            job.pending.push((pod, known.shape()));
            if member.nominated.is_none() {
                job.uncounted.add(&self.world.request(pod));
            }
        }
        job.ok_or(Refusal::Mixed)
    }

    fn known(&self, pod: PodId) -> Option<(&Member, &Pod)> {
        Some((self.world.member(pod)?, self.world.cluster().pod(pod)?))
    }

    fn gate(&self, job: &Job, trace: &mut Trace<Step>) -> Result<(), Refusal> {
        let Some(quota) = job.quota else {
            return Ok(());
        };
        let told = admission(self.world.quotas(), quota, job.class, job.uncounted.clone());
        trace.note(|| Step::Gate(told.clone()));
        if told.may_preempt() {
            return Ok(());
        }
        Err(Refusal::Quota(told))
    }

    /// The quotas on the job's path that would pass their max with it, those that leave not counted.
    fn over_max(&self, job: &Job, trace: &mut Trace<Step>) -> Vec<Over> {
        let quotas = self.world.quotas();
        let mut all = Vec::new();
        for quota in job.quota.iter().flat_map(|it| quotas.path(*it)) {
            let mut used = quotas.figures(quota).used().plus(&job.uncounted);
            let max = &quotas.limits(quota).max;
            if used.fits(max) {
                continue;
            }
            for pod in self.world.leaving() {
                if self.world.counts_at(pod, quota) {
                    used.subtract(&self.world.request(pod));
                }
            }
            let over = used.beyond(max);
            if !over.is_empty() {
                trace.note(|| Step::OverMax { quota, over });
                all.push(Over { quota, used });
            }
        }
        all
    }

    /// All that count against those quotas and may be taken, off their use. They must make room.
    fn recycled(
        &self,
        job: &Job,
        over: &mut [Over],
        trace: &mut Trace<Step>,
    ) -> Result<BTreeMap<PodId, HostId>, Refusal> {
        let mut recycled = BTreeMap::new();
        if over.is_empty() {
            return Ok(recycled);
        }
        for (id, pod) in self.world.cluster().pods() {
            let Some((member, host)) = self.world.member(id).zip(pod.host()) else {
                continue;
            };
            if !may_be_taken(member, pod, job.priority) {
                continue;
            }
            let mut is_counted = false;
            for it in &mut *over {
                if self.world.counts_at(id, it.quota) {
                    it.used.subtract(&self.world.request(id));
                    is_counted = true;
                }
            }
            if is_counted {
                let reason = Removal::Quota;
                trace.note(|| Step::Removed {
                    pod: id,
                    host,
                    reason,
                });
                recycled.insert(id, host);
            }
        }
        let max = |it: &Over| &self.world.quotas().limits(it.quota).max;
        match over.iter().find(|it| !it.used.fits(max(it))) {
            Some(it) => Err(Refusal::OverMax { quota: it.quota }),
            None => Ok(recycled),
        }
    }

    fn hosts(&self, trace: &mut Trace<Step>) -> Vec<HostId> {
        let mut hosts = Vec::with_capacity(self.world.cluster().hosts_len());
        for host in self.world.cluster().hosts() {
            if self.excluded.contains(&host) {
                trace.note(|| Step::Excluded { host });
            } else {
                hosts.push(host);
            }
        }
        hosts
    }

    /// The nodes where pods go, and what they ask for there.
    fn asked_of(&self, nominations: &[(PodId, HostId)]) -> Asked {
        let mut asked = Asked::new();
        for (pod, host) in nominations {
            let requests = self.world.cluster().requests(*pod).iter();
            let of_host = asked.entry(*host).or_default();
            of_host.extend(requests.map(|(resource, _)| *resource));
        }
        asked
    }

    fn leaving_on(&self, used: &Asked) -> Vec<PodId> {
        let host = |pod: &PodId| self.world.cluster().pod(*pod)?.host();
        let is_there = |pod: &PodId| host(pod).is_some_and(|it| used.contains_key(&it));
        self.world.leaving().filter(is_there).collect()
    }
}

fn nominations(
    job: &Job,
    placement: Vec<Option<HostId>>,
    trace: &mut Trace<Step>,
) -> Result<Vec<(PodId, HostId)>, Refusal> {
    let mut nominations = Vec::with_capacity(placement.len());
    let mut missing = None;
    for ((pod, _), host) in job.pending.iter().zip(placement) {
        let pod = *pod;
        if let Some(host) = host {
            trace.note(|| Step::Nominated { pod, host });
            nominations.push((pod, host));
        } else {
            trace.note(|| Step::Unplaced { pod });
            missing = missing.or(Some(pod));
        }
    }
    match missing {
        Some(pod) => Err(Refusal::NoPlace { pod }),
        None => Ok(nominations),
    }
}
