//! The effect of a change of queues, cohorts, flavors and classes on the same workloads.

use crate::identity::{controlling_job, queue_name};
use crate::quota::exceeds_nominal;
use crate::world::World;
use lockkeeper_cluster_state::{ClusterState, WorkloadPhase};
use lockkeeper_preemption::{Decision, RequeueDestination, WorkloadId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The most cycles that are run for each of the two worlds.
const CYCLES_MAX: usize = 20_000;

/// A workload that a change affects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Affected {
    /// `namespace/name`.
    pub workload: String,
    /// The job that owns it, as `Kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its ClusterQueue after the change, or before it if it has none afterwards.
    pub cluster_queue: String,
    /// The workload that preempts it, if it is preempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemptor: Option<String>,
}

/// The effect of a change, if no other object changes and no workload arrives or ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Pending workloads that start only after the change.
    pub starts: Vec<Affected>,
    /// Pending workloads that start only without the change.
    pub no_longer_starts: Vec<Affected>,
    /// Running workloads that are preempted only after the change.
    pub preempted: Vec<Affected>,
    /// Running workloads that are preempted only without the change.
    pub no_longer_preempted: Vec<Affected>,
    /// Running workloads whose ClusterQueue exceeds its nominal quota only after the change, so that it may be reclaimed.
    pub reclaimable: Vec<Affected>,
    /// Running workloads whose ClusterQueue exceeds its nominal quota only before the change.
    pub no_longer_reclaimable: Vec<Affected>,
    /// Workloads that are in a queue only before the change.
    pub not_queued: Vec<Affected>,
    /// Workloads that are in a queue only after the change.
    pub queued: Vec<Affected>,
    /// Objects that are not considered after the change, with the reason.
    pub invalid: Vec<String>,
    /// Whether the cycles of one of the worlds did not end, for example in a preemption loop.
    pub is_incomplete: bool,
}

impl Comparison {
    /// Whether the change affects no workload.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the change stops a workload that runs, takes quota that it may lose, or keeps one from its queue.
    #[must_use]
    pub fn is_harmful(&self) -> bool {
        !self.preempted.is_empty()
            || !self.reclaimable.is_empty()
            || !self.not_queued.is_empty()
            || !self.no_longer_starts.is_empty()
            || !self.invalid.is_empty()
            || self.is_incomplete
    }
}

/// The state of all workloads once no cycle changes anything.
#[derive(Default)]
struct Outcome {
    started: BTreeSet<String>,
    /// The preemptor of each preempted workload.
    preempted: BTreeMap<String, String>,
    exceeding: BTreeSet<String>,
    queued: BTreeSet<String>,
    queues: BTreeMap<String, String>,
    is_incomplete: bool,
}

/// Compares the decisions in two worlds with the same workloads.
#[must_use]
pub fn compare(old: &World, new: &World) -> Comparison {
    let (before, after) = (outcome(old), outcome(new));
    let affected = |key: &String| Affected {
        workload: key.clone(),
        job: new.workload(key).and_then(|it| controlling_job(it)),
        cluster_queue: after
            .queues
            .get(key)
            .or_else(|| before.queues.get(key))
            .cloned()
            .unwrap_or_default(),
        preemptor: after
            .preempted
            .get(key)
            .or_else(|| before.preempted.get(key))
            .cloned(),
    };
    let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<Affected> {
        a.difference(b)
            .map(affected)
            .map(without_preemptor)
            .collect()
    };
    let preempted_only = |a: &Outcome, b: &Outcome| -> Vec<Affected> {
        let keys = a
            .preempted
            .keys()
            .filter(|it| !b.preempted.contains_key(*it));
        keys.map(affected).collect()
    };
    let invalid = new.unreadable.iter().map(ToString::to_string);
    let known: BTreeSet<String> = old.unreadable.iter().map(ToString::to_string).collect();
    Comparison {
        starts: only(&after.started, &before.started),
        no_longer_starts: only(&before.started, &after.started),
        preempted: preempted_only(&after, &before),
        no_longer_preempted: preempted_only(&before, &after),
        reclaimable: only(&after.exceeding, &before.exceeding),
        no_longer_reclaimable: only(&before.exceeding, &after.exceeding),
        not_queued: only(&before.queued, &after.queued),
        queued: only(&after.queued, &before.queued),
        invalid: invalid.filter(|it| !known.contains(it)).collect(),
        is_incomplete: before.is_incomplete || after.is_incomplete,
    }
}

fn without_preemptor(mut affected: Affected) -> Affected {
    affected.preemptor = None;
    affected
}

fn outcome(world: &World) -> Outcome {
    let mut outcome = Outcome::default();
    let mut cluster = world.cluster.clone();
    cluster.state_mut().apply_changes();
    let mut running = BTreeMap::new();
    for key in world.workload_keys() {
        let is_queued = matches!(
            cluster.phase(key),
            Some(Ok(WorkloadPhase::Admitted
                | WorkloadPhase::Pending
                | WorkloadPhase::OnHold(_)))
        );
        let state = cluster.state();
        let Some(id) = state.workload(key).filter(|_| is_queued) else {
            continue;
        };
        outcome.queued.insert(key.to_owned());
        let view = state.workload_view(id);
        outcome.queues.insert(key.to_owned(), queue_name(state, id));
        if view.reservation().is_some() {
            running.insert(id, key.to_owned());
            if exceeds_nominal(state, id) {
                outcome.exceeding.insert(key.to_owned());
            }
        }
    }
    run_cycles(cluster, &running, &mut outcome);
    outcome
}

/// Runs cycles until none changes anything. Victims release their quota at once.
fn run_cycles(
    mut cluster: ClusterState,
    running: &BTreeMap<WorkloadId, String>,
    outcome: &mut Outcome,
) {
    let now_ms = cluster.now_ms();
    for _ in 0..CYCLES_MAX {
        let cycle = cluster.next_cycle(now_ms, false);
        let mut has_progress = !cycle.out_of_scope.is_empty() || cycle.has_reactivated;
        for entry in cycle.entries {
            let name = cluster.state().workload_name(entry.workload).to_owned();
            match entry.decision {
                Decision::Admit => {
                    has_progress = true;
                    if !running.contains_key(&entry.workload) {
                        outcome.started.insert(name);
                    }
                }
                Decision::Preempt(victims) => {
                    for victim in victims {
                        has_progress = true;
                        let key = cluster.state().workload_name(victim.workload).to_owned();
                        cluster.state_mut().release(victim.workload);
                        outcome.started.remove(&key);
                        if running.contains_key(&victim.workload) {
                            outcome.preempted.insert(key, name.clone());
                        }
                    }
                }
                _ => {}
            }
            has_progress |= matches!(entry.requeued, Some((_, RequeueDestination::Inadmissible)));
        }
        if !has_progress {
            return;
        }
    }
    outcome.is_incomplete = true;
}
