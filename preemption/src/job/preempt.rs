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

use super::assign_back::{AssignBack, assign_back};
use super::cluster::{GangSize, JobCluster, JobId, JobPod};
use super::in_flight::{BlockedReason, RoundsInFlight};
use super::preemptibility::{Preemptibility, VictimAction};
use super::quota::QuotaId;
use super::quota_check::{QuotaCheck, check_quota};
use super::request::{NodeRequests, QuotaOveruse};
use super::resource_list::ResourceList;
use super::simulated_removal::{SimulatedRemoval, is_candidate};
use super::trace::{JobStep, RemovalReason};
use crate::ids::{HostId, PodId, ShapeId};
use crate::placement::{Overlay, Pod, Strategy, place};
use crate::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};

/// What comes of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// The job gets places. Only now does anything happen.
    Preempt(JobPlan),
    /// It gets none, and nothing happens to anybody.
    Rejected(JobRejection),
}

/// What is to be done, all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The node of each pod that had none, by name of the pod.
    pub nominations: Vec<(PodId, HostId)>,
    /// Who goes, by name. There may be nobody: then the job fits as things are.
    pub victims: Vec<PodId>,
    /// What becomes of them.
    pub action: VictimAction,
    /// Who leaves anyway and must have gone before the job fits.
    pub leaving: Vec<PodId>,
}

impl JobPlan {
    /// All that the job waits for, as [`InFlight::begin`] wants it.
    pub fn awaited(&self) -> impl Iterator<Item = PodId> {
        self.victims.iter().chain(&self.leaving).copied()
    }
}

/// Why a job gets no places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRejection {
    /// Rounds are in flight.
    Blocked(BlockedReason),
    /// It has no pods, or its pods differ in quota, class or priority.
    MixedPods,
    /// It may run with fewer pods than it has, or some of its pods are not there yet.
    IncompleteGang {
        /// How its owner declares it.
        gang: GangSize,
        /// How many pods are there.
        pods: usize,
    },
    /// Labels or policy forbid it to trigger preemption.
    TriggerNotAllowed,
    /// Its quota or one above forbids it.
    Quota(QuotaCheck),
    /// With all gone that may be taken a quota would still pass its max.
    OverMax {
        /// The quota.
        quota: QuotaId,
    },
    /// With all gone that may be taken one of its pods fits nowhere.
    NoPlacement {
        /// The first such pod.
        pod: PodId,
    },
}

/// What the pods of a job agree on.
struct JobSummary {
    quota: Option<QuotaId>,
    preemptibility: Preemptibility,
    priority: i32,
    may_trigger: bool,
    /// Those without a place, by name.
    pending: Vec<(PodId, ShapeId)>,
    /// What pods ask for that the quota does not count yet.
    uncounted: ResourceList,
}

/// Plans a round for a job at a time, in seconds. `excluded` are nodes where it cannot go whoever leaves
/// (`UnschedulableAndUnresolvable`), beside those that its pods' own requirements exclude.
///
/// Nodes are tried in the order of the cluster. Costs the pods of all nodes, and for each different shape of the
/// job's pods the nodes.
#[must_use]
pub fn plan_round(
    world: &JobCluster,
    rounds: &RoundsInFlight,
    job: JobId,
    excluded: &BTreeSet<HostId>,
    now_s: i64,
    trace: &mut Trace<JobStep>,
) -> JobOutcome {
    let planned = RoundPlanner {
        state: world,
        excluded,
    }
    .plan(rounds, job, now_s, trace);
    planned.map_or_else(JobOutcome::Rejected, JobOutcome::Preempt)
}

struct RoundPlanner<'a> {
    state: &'a JobCluster,
    excluded: &'a BTreeSet<HostId>,
}

impl RoundPlanner<'_> {
    fn plan(
        &self,
        rounds: &RoundsInFlight,
        id: JobId,
        now_s: i64,
        trace: &mut Trace<JobStep>,
    ) -> Result<JobPlan, JobRejection> {
        if let Some(blocked) = rounds.blocked_reason(id, now_s) {
            trace.record(|| JobStep::Blocked(blocked));
            return Err(JobRejection::Blocked(blocked));
        }
        let job = self.summarize_job(id, trace)?;
        let may = job.may_trigger;
        trace.record(|| JobStep::Trigger { may });
        if !may {
            return Err(JobRejection::TriggerNotAllowed);
        }
        self.check_quota_gate(&job, trace)?;
        let mut over = self.over_max(&job, trace);
        let recycled = self.remove_for_quota(&job, &mut over, trace)?;
        let hosts = self.hosts(trace);
        let emptied = SimulatedRemoval {
            state: self.state,
            job: id,
            priority: job.priority,
            removed_for_quota: &recycled,
        };
        let shapes: Vec<ShapeId> = job.pending.iter().map(|(_, shape)| *shape).collect();
        let cluster = self.state.cluster();
        let as_it_is = emptied.free_after_removal(&hosts, false);
        let mut room = Overlay::new(&as_it_is);
        let mut placement = place(cluster, &mut room, &hosts, &shapes, Strategy::FirstFit);
        let fits = placement.iter().all(Option::is_some);
        trace.record(|| JobStep::PlacedWithoutVictims { fits });
        let without_victims;
        if !fits {
            without_victims = emptied.free_after_removal(&hosts, true);
            room = Overlay::new(&without_victims);
            placement = place(cluster, &mut room, &hosts, &shapes, Strategy::FirstFit);
        }
        let nominations = nominations(&job, placement, trace)?;
        let used = self.node_requests(&nominations);
        let mut removed = Vec::new();
        if !fits {
            removed = emptied.removed_pods(&used, trace);
        }
        removed.extend(recycled.iter().map(|(pod, host)| (*pod, *host)));
        let returned = AssignBack {
            state: self.state,
            requests: &used,
            overused: over,
        };
        let victims = assign_back(returned, &mut room, removed, trace);
        Ok(JobPlan {
            leaving: self.leaving_on(&used),
            nominations,
            victims,
            action: self.state.elastic_defaults().victim_action(),
        })
    }

    /// What its pods agree on, and who of them has a place.
    fn summarize_job(
        &self,
        id: JobId,
        trace: &mut Trace<JobStep>,
    ) -> Result<JobSummary, JobRejection> {
        let pods = self.state.pods_of(id);
        if let Some(gang) = self.state.gang(id)
            && (gang.minimum != gang.total || usize::try_from(gang.total) != Ok(pods.len()))
        {
            let pods = pods.len();
            return Err(JobRejection::IncompleteGang { gang, pods });
        }
        let switches = self.state.elastic_defaults();
        let mut job: Option<JobSummary> = None;
        for pod in pods {
            let Some((member, known)) = self.member_and_pod(pod) else {
                continue;
            };
            let job = job.get_or_insert_with(|| JobSummary {
                quota: member.quota,
                preemptibility: member.preemptibility,
                priority: known.priority(),
                may_trigger: true,
                pending: Vec::new(),
                uncounted: ResourceList::default(),
            });
            if (member.quota, member.preemptibility, known.priority())
                != (job.quota, job.preemptibility, job.priority)
            {
                return Err(JobRejection::MixedPods);
            }
            job.may_trigger &= switches.may_trigger_preemption(member.preemption_labels);
            if let Some(host) = known.host() {
                trace.record(|| JobStep::Placed { pod, host });
                continue;
            }
            job.pending.push((pod, known.shape()));
            if member.nominated.is_none() {
                job.uncounted.add(&self.state.request(pod));
            }
        }
        job.ok_or(JobRejection::MixedPods)
    }

    fn member_and_pod(&self, pod: PodId) -> Option<(&JobPod, &Pod)> {
        Some((self.state.member(pod)?, self.state.cluster().pod(pod)?))
    }

    fn check_quota_gate(
        &self,
        job: &JobSummary,
        trace: &mut Trace<JobStep>,
    ) -> Result<(), JobRejection> {
        let Some(quota) = job.quota else {
            return Ok(());
        };
        let told = check_quota(
            self.state.quotas(),
            quota,
            job.preemptibility,
            job.uncounted.clone(),
        );
        trace.record(|| JobStep::QuotaGate(told.clone()));
        if told.may_preempt() {
            return Ok(());
        }
        Err(JobRejection::Quota(told))
    }

    /// The quotas on the job's path that would pass their max with it, those that leave not counted.
    fn over_max(&self, job: &JobSummary, trace: &mut Trace<JobStep>) -> Vec<QuotaOveruse> {
        let quotas = self.state.quotas();
        let mut all = Vec::new();
        for quota in job.quota.iter().flat_map(|it| quotas.path(*it)) {
            let mut used = quotas.usage(quota).used().plus(&job.uncounted);
            let max = &quotas.limits(quota).max;
            if used.fits(max) {
                continue;
            }
            for pod in self.state.leaving() {
                if self.state.counts_at(pod, quota) {
                    used.subtract(&self.state.request(pod));
                }
            }
            let over = used.exceeding(max);
            if !over.is_empty() {
                trace.record(|| JobStep::OverMax { quota, over });
                all.push(QuotaOveruse { quota, used });
            }
        }
        all
    }

    /// All that count against those quotas and may be taken, off their use. They must make room.
    fn remove_for_quota(
        &self,
        job: &JobSummary,
        over: &mut [QuotaOveruse],
        trace: &mut Trace<JobStep>,
    ) -> Result<BTreeMap<PodId, HostId>, JobRejection> {
        let mut recycled = BTreeMap::new();
        if over.is_empty() {
            return Ok(recycled);
        }
        for (id, pod) in self.state.cluster().pods() {
            let Some((member, host)) = self.state.member(id).zip(pod.host()) else {
                continue;
            };
            if !is_candidate(member, pod, job.priority) {
                continue;
            }
            let mut is_counted = false;
            for it in &mut *over {
                if self.state.counts_at(id, it.quota) {
                    it.used.subtract(&self.state.request(id));
                    is_counted = true;
                }
            }
            if is_counted {
                let reason = RemovalReason::Quota;
                trace.record(|| JobStep::Removed {
                    pod: id,
                    host,
                    reason,
                });
                recycled.insert(id, host);
            }
        }
        let max = |it: &QuotaOveruse| &self.state.quotas().limits(it.quota).max;
        match over.iter().find(|it| !it.used.fits(max(it))) {
            Some(it) => Err(JobRejection::OverMax { quota: it.quota }),
            None => Ok(recycled),
        }
    }

    fn hosts(&self, trace: &mut Trace<JobStep>) -> Vec<HostId> {
        let mut hosts = Vec::with_capacity(self.state.cluster().hosts_len());
        for host in self.state.cluster().hosts() {
            if self.excluded.contains(&host) {
                trace.record(|| JobStep::Excluded { host });
            } else {
                hosts.push(host);
            }
        }
        hosts
    }

    /// The nodes where pods go, and what they ask for there.
    fn node_requests(&self, nominations: &[(PodId, HostId)]) -> NodeRequests {
        let mut asked = NodeRequests::new();
        for (pod, host) in nominations {
            let requests = self.state.cluster().requests(*pod).iter();
            let of_host = asked.entry(*host).or_default();
            of_host.extend(requests.map(|(resource, _)| *resource));
        }
        asked
    }

    fn leaving_on(&self, used: &NodeRequests) -> Vec<PodId> {
        let host = |pod: &PodId| self.state.cluster().pod(*pod)?.host();
        let is_there = |pod: &PodId| host(pod).is_some_and(|it| used.contains_key(&it));
        self.state.leaving().filter(is_there).collect()
    }
}

fn nominations(
    job: &JobSummary,
    placement: Vec<Option<HostId>>,
    trace: &mut Trace<JobStep>,
) -> Result<Vec<(PodId, HostId)>, JobRejection> {
    let mut nominations = Vec::with_capacity(placement.len());
    let mut missing = None;
    for ((pod, _), host) in job.pending.iter().zip(placement) {
        let pod = *pod;
        if let Some(host) = host {
            trace.record(|| JobStep::Nominated { pod, host });
            nominations.push((pod, host));
        } else {
            trace.record(|| JobStep::Unplaced { pod });
            missing = missing.or(Some(pod));
        }
    }
    match missing {
        Some(pod) => Err(JobRejection::NoPlacement { pod }),
        None => Ok(nominations),
    }
}
