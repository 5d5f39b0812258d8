//! One round: the victims that make room for a whole job, and the nodes of its pods.
//!
//! Source: the proposal, `PostFilter` (R5–R14). The steps in order:
//!
//! 1. **Rounds in flight.** A job begins no round while victims of its last one still exist.
//! 2. **The job.** All its pods have the same quota, preemptibility and priority; its gang has no spare and no missing
//!    pods.
//! 3. **Trigger and quota gate**, by labels, policy and the sums of the job.
//! 4. **Recycling.** If a quota would exceed its max, all candidates that count against it are removed, on any node:
//!    preemptible pods of lower priority.
//! 5. **Placement.** Each pending pod, by name, is placed on the first node with room. If not all fit, all candidates
//!    are removed from the nodes and placement is tried once more. If a pod still does not fit, nothing is preempted.
//! 6. **Assign-back** (`assign_back`).
//!
//! Leaving pods count as removed and are not evicted again. Room of a nominated pod of another job counts as used
//! unless that job has a lower priority. Pods of an ancestor quota are removed only if that quota would exceed its max.

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

/// The outcome of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// The job can be placed with this plan.
    Preempt(JobPlan),
    /// The job cannot be placed; nothing is preempted.
    Rejected(JobRejection),
}

/// All actions of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The node of each pending pod, by pod name.
    pub nominations: Vec<(PodId, HostId)>,
    /// The victims, by name. Empty if the job fits without preemption.
    pub victims: Vec<PodId>,
    /// What happens to the victims.
    pub action: VictimAction,
    /// Leaving pods that must be gone before the job fits.
    pub leaving: Vec<PodId>,
}

impl JobPlan {
    /// All pods that the job waits for, as input of [`RoundsInFlight::begin`].
    pub fn awaited(&self) -> impl Iterator<Item = PodId> {
        self.victims.iter().chain(&self.leaving).copied()
    }
}

/// Why a job cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRejection {
    /// Rounds in flight block it.
    Blocked(BlockedReason),
    /// It has no pods, or its pods differ in quota, preemptibility or priority.
    MixedPods,
    /// It may run with fewer pods than it has, or some of its pods do not exist yet.
    IncompleteGang {
        /// Its declared size.
        gang: GangSize,
        /// How many of its pods exist.
        pods: usize,
    },
    /// Labels or policy forbid it to preempt.
    TriggerNotAllowed,
    /// Its quota or an ancestor forbids it.
    Quota(QuotaCheck),
    /// Even without all candidates a quota would exceed its max.
    OverMax {
        /// The quota.
        quota: QuotaId,
    },
    /// Even without all candidates one of its pods fits nowhere.
    NoPlacement {
        /// The first such pod.
        pod: PodId,
    },
}

/// The common properties of a job's pods.
struct JobSummary {
    quota: Option<QuotaId>,
    preemptibility: Preemptibility,
    priority: i32,
    may_trigger: bool,
    /// The pods without a node, by name.
    pending: Vec<(PodId, ShapeId)>,
    /// The requests that the quota does not count yet.
    uncounted: ResourceList,
}

/// Plans a round for a job at `now_s`, in seconds. `excluded` are further nodes that preemption cannot make feasible
/// (`UnschedulableAndUnresolvable`).
///
/// Nodes are tried in cluster order. Costs the pods of all nodes, and the nodes for each different shape of the job's
/// pods.
#[must_use]
pub fn plan_round(
    state: &JobCluster,
    rounds: &RoundsInFlight,
    job: JobId,
    excluded: &BTreeSet<HostId>,
    now_s: i64,
    trace: &mut Trace<JobStep>,
) -> JobOutcome {
    let planned = RoundPlanner { state, excluded }.plan(rounds, job, now_s, trace);
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
        let may_trigger = job.may_trigger;
        trace.record(|| JobStep::Trigger { may: may_trigger });
        if !may_trigger {
            return Err(JobRejection::TriggerNotAllowed);
        }
        self.check_quota_gate(&job, trace)?;
        let mut over = self.over_max(&job, trace);
        let removed_for_quota = self.remove_for_quota(&job, &mut over, trace)?;
        let hosts = self.hosts(trace);
        let removal = SimulatedRemoval {
            state: self.state,
            job: id,
            priority: job.priority,
            removed_for_quota: &removed_for_quota,
        };
        let shapes: Vec<ShapeId> = job.pending.iter().map(|(_, shape)| *shape).collect();
        let cluster = self.state.cluster();
        // The proposal leaves open whether the job fits without preemption; try that first.
        let without_leaving = removal.free_after_removal(&hosts, false);
        let mut room = Overlay::new(&without_leaving);
        let mut placement = place(cluster, &mut room, &hosts, &shapes, Strategy::FirstFit);
        let fits = placement.iter().all(Option::is_some);
        trace.record(|| JobStep::PlacedWithoutVictims { fits });
        let without_victims;
        if !fits {
            without_victims = removal.free_after_removal(&hosts, true);
            room = Overlay::new(&without_victims);
            placement = place(cluster, &mut room, &hosts, &shapes, Strategy::FirstFit);
        }
        let nominations = nominations(&job, placement, trace)?;
        let used = self.node_requests(&nominations);
        let mut removed = Vec::new();
        if !fits {
            removed = removal.removed_pods(&used, trace);
        }
        // Candidates that count against a quota are removed on all nodes, not only those in use.
        removed.extend(removed_for_quota.iter().map(|(pod, host)| (*pod, *host)));
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

    /// The common properties of the job's pods, and its pending pods.
    fn summarize_job(
        &self,
        id: JobId,
        trace: &mut Trace<JobStep>,
    ) -> Result<JobSummary, JobRejection> {
        let pods = self.state.pods_of(id);
        // The proposal covers only jobs with a minimum equal to the total (R13).
        if let Some(gang) = self.state.gang(id)
            && (gang.minimum != gang.total || usize::try_from(gang.total) != Ok(pods.len()))
        {
            let pods = pods.len();
            return Err(JobRejection::IncompleteGang { gang, pods });
        }
        let defaults = self.state.elastic_defaults();
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
            job.may_trigger &= defaults.may_trigger_preemption(member.preemption_labels);
            if let Some(host) = known.host() {
                trace.record(|| JobStep::Placed { pod, host });
                continue;
            }
            job.pending.push((pod, known.shape()));
            // A nominated pod counts as placed: its quota contains it already.
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
        let check = check_quota(
            self.state.quotas(),
            quota,
            job.preemptibility,
            job.uncounted.clone(),
        );
        trace.record(|| JobStep::QuotaGate(check.clone()));
        if check.may_preempt() {
            return Ok(());
        }
        Err(JobRejection::Quota(check))
    }

    /// The quotas on the job's path that would exceed their max with it, leaving pods not counted.
    fn over_max(&self, job: &JobSummary, trace: &mut Trace<JobStep>) -> Vec<QuotaOveruse> {
        let quotas = self.state.quotas();
        let mut all = Vec::new();
        for quota in job.quota.iter().flat_map(|it| quotas.path(*it)) {
            let mut used = quotas.usage(quota).used().plus(&job.uncounted);
            let max = &quotas.limits(quota).max;
            // Leaving pods can only lower the usage, so they need not be subtracted.
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

    /// Removes all candidates that count against those quotas. Errors if a quota would still exceed its max.
    fn remove_for_quota(
        &self,
        job: &JobSummary,
        over: &mut [QuotaOveruse],
        trace: &mut Trace<JobStep>,
    ) -> Result<BTreeMap<PodId, HostId>, JobRejection> {
        let mut removed_for_quota = BTreeMap::new();
        if over.is_empty() {
            return Ok(removed_for_quota);
        }
        for (id, pod) in self.state.cluster().pods() {
            let Some((member, host)) = self.state.member(id).zip(pod.host()) else {
                continue;
            };
            if !is_candidate(member, pod, job.priority) {
                continue;
            }
            let mut is_counted = false;
            for overuse in &mut *over {
                if self.state.counts_at(id, overuse.quota) {
                    overuse.used.subtract(&self.state.request(id));
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
                removed_for_quota.insert(id, host);
            }
        }
        let max = |it: &QuotaOveruse| &self.state.quotas().limits(it.quota).max;
        match over.iter().find(|it| !it.used.fits(max(it))) {
            Some(overuse) => Err(JobRejection::OverMax {
                quota: overuse.quota,
            }),
            None => Ok(removed_for_quota),
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

    /// The requested resources on each node of the placement.
    fn node_requests(&self, nominations: &[(PodId, HostId)]) -> NodeRequests {
        let mut by_node = NodeRequests::new();
        for (pod, host) in nominations {
            let requests = self.state.cluster().requests(*pod).iter();
            let on_host = by_node.entry(*host).or_default();
            on_host.extend(requests.map(|(resource, _)| *resource));
        }
        by_node
    }

    fn leaving_on(&self, used: &NodeRequests) -> Vec<PodId> {
        let host = |pod: &PodId| self.state.cluster().pod(*pod)?.host();
        // The job does not wait for leaving pods on nodes that it does not use.
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
            // Continue after the first: the trace lists each pod that has no node.
            missing = missing.or(Some(pod));
        }
    }
    match missing {
        Some(pod) => Err(JobRejection::NoPlacement { pod }),
        None => Ok(nominations),
    }
}
