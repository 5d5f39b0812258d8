//! The workloads that use quota which a pending workload lacks, and why each may or may not be preempted.

use crate::answer::Candidate;
use crate::identity::queue_name;
use crate::quota::needed;
use crate::trial::Trial;
use lockkeeper_api::cluster_queue::{Preemption, ReclaimWithinCohort, WithinClusterQueue};
use lockkeeper_cluster_state::decision_text::protection_text;
use lockkeeper_preemption::{
    CandidateVerdict, FlavorResource, NodeId, QueueVerdict, State, Step, Trace, Victim, WorkloadId,
};
use std::collections::{BTreeMap, BTreeSet};

/// The verdict on a candidate.
struct Verdict {
    may_be_preempted: bool,
    reason: String,
}

impl Verdict {
    fn yes(reason: impl Into<String>) -> Self {
        Self {
            may_be_preempted: true,
            reason: reason.into(),
        }
    }

    fn no(reason: impl Into<String>) -> Self {
        Self {
            may_be_preempted: false,
            reason: reason.into(),
        }
    }
}

/// What the trace of a nomination says about workloads and queues.
#[derive(Default)]
struct TraceVerdicts {
    workloads: BTreeMap<WorkloadId, Verdict>,
    queues: BTreeMap<NodeId, QueueVerdict>,
}

impl TraceVerdicts {
    fn new(trace: &Trace, victims: &[Victim]) -> Self {
        let mut verdicts = Self::default();
        for step in trace.steps() {
            verdicts.add(step);
        }
        // Later searches try candidates again that an earlier one has selected.
        for victim in victims {
            verdicts
                .workloads
                .insert(victim.workload, Verdict::yes("it would be preempted"));
        }
        verdicts
    }

    fn add(&mut self, step: &Step) {
        let (workload, verdict) = match step {
            Step::Candidate {
                workload, verdict, ..
            } => (*workload, candidate_verdict(*verdict)),
            Step::FilledBack { workload } => (
                *workload,
                Verdict::yes("it is not needed: the others release enough quota"),
            ),
            Step::Protected {
                workload,
                protection,
            } => (
                *workload,
                Verdict::no(format!("protected, {}", protection_text(*protection))),
            ),
            Step::Queue { queue, verdict } => {
                self.queues.insert(*queue, *verdict);
                return;
            }
            _ => return,
        };
        self.workloads.insert(workload, verdict);
    }
}

fn candidate_verdict(verdict: CandidateVerdict) -> Verdict {
    match verdict {
        CandidateVerdict::NotNewer => Verdict::no("of equal priority and not newer"),
        CandidateVerdict::NotWhileBorrowing => Verdict::no(
            "the pending workload would have to borrow, and borrowWithinCohort does not permit that",
        ),
        CandidateVerdict::ShareTooLarge => Verdict::no(
            "the ClusterQueue of the pending workload would have the larger share (fair sharing)",
        ),
        _ => Verdict::yes(
            "it may be preempted, and all such workloads together do not release enough quota",
        ),
    }
}

/// The candidates, those that may be preempted first, then by preemption priority and name.
pub(crate) fn candidates(trial: &mut Trial, trace: &Trace, victims: &[Victim]) -> Vec<Candidate> {
    let needed = needed(trial);
    let Some(id) = trial.id() else {
        return Vec::new();
    };
    let verdicts = TraceVerdicts::new(trace, victims);
    let state = trial.cluster.state();
    let policy = trial.queue.spec.preemption.clone().unwrap_or_default();
    let mut candidates = Vec::new();
    for other in trial.others.iter().copied() {
        let Some(reservation) = state.workload_view(other).reservation() else {
            continue;
        };
        let uses: BTreeSet<FlavorResource> = reservation.usage.iter().map(|(of, _)| *of).collect();
        if needed.is_disjoint(&uses) {
            continue;
        }
        let verdict = match verdicts.workloads.get(&other) {
            Some(known) => Verdict {
                may_be_preempted: known.may_be_preempted,
                reason: known.reason.clone(),
            },
            None => by_policy(state, &policy, id, other, &needed, &verdicts.queues),
        };
        candidates.push(Candidate {
            workload: state.workload_name(other).to_owned(),
            cluster_queue: queue_name(state, other),
            preemption_priority: state.workload_view(other).preemption_priority(),
            may_be_preempted: verdict.may_be_preempted,
            reason: verdict.reason,
        });
    }
    candidates.sort_by(|a, b| {
        let key = |it: &Candidate| (!it.may_be_preempted, it.preemption_priority);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.workload.cmp(&b.workload))
    });
    candidates
}

/// Why a workload that no search considered may or may not be preempted.
fn by_policy(
    state: &State,
    policy: &Preemption,
    id: WorkloadId,
    other: WorkloadId,
    needed: &BTreeSet<FlavorResource>,
    queues: &BTreeMap<NodeId, QueueVerdict>,
) -> Verdict {
    let (own, its) = (state.workload_view(id), state.workload_view(other));
    let is_lower = its.preemption_priority() < own.priority();
    let not_lower = || {
        Verdict::no(format!(
            "its preemption priority {} is not below {}",
            its.preemption_priority(),
            own.priority()
        ))
    };
    if its.queue() == own.queue() {
        return match policy.within_cluster_queue.unwrap_or_default() {
            WithinClusterQueue::Never => Verdict::no("withinClusterQueue is Never"),
            _ if !is_lower => not_lower(),
            _ => not_searched(queues, its.queue()),
        };
    }
    let borrows = its.queue().is_some_and(|queue| {
        needed
            .iter()
            .any(|of| state.node_view(queue).borrowed(*of) > lockkeeper_preemption::Amount::ZERO)
    });
    match policy.reclaim_within_cohort.unwrap_or_default() {
        ReclaimWithinCohort::Never => Verdict::no("reclaimWithinCohort is Never"),
        _ if !borrows => Verdict::no("its ClusterQueue does not borrow"),
        ReclaimWithinCohort::LowerPriority if !is_lower => not_lower(),
        _ => not_searched(queues, its.queue()),
    }
}

/// A workload that the policy permits to preempt, and that no search reached.
fn not_searched(queues: &BTreeMap<NodeId, QueueVerdict>, queue: Option<NodeId>) -> Verdict {
    match queue.and_then(|it| queues.get(&it)) {
        Some(QueueVerdict::NoLongerBorrows) => {
            Verdict::no("its ClusterQueue would no longer borrow after the preemption of others")
        }
        Some(QueueVerdict::AboveThreshold { threshold_max }) => Verdict::no(format!(
            "its priority is above the threshold {threshold_max}"
        )),
        Some(QueueVerdict::PriorityTooHigh) => Verdict::no("its priority is too high"),
        _ => Verdict::yes(
            "the policy permits its preemption, which is not necessary or not sufficient",
        ),
    }
}
