//! The state of a job during a simulation.

use super::job_trace::JobTrace;
use super::queue_history::TriedFlavors;
use super::result::Run;
use super::usage_record::HeldQuota;
use lockkeeper_preemption::{NodeId, PodSet, State, WorkloadId};
use lockkeeper_scenario::core_pod_sets;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Jobs seldom have more runs. For them, a run does not reserve memory for further ones.
const FEW_RUNS: usize = 4;

/// The phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    NotArrived,
    Pending,
    /// It has quota, and waits for its nodes.
    Nominated,
    /// Until this time, in seconds; without end if it is the largest one.
    Running(i64),
    /// Preempted or evicted; keeps its quota until this time, in seconds.
    Terminating(i64),
    Finished,
    /// Its pods were not ready in time too often.
    Deactivated,
}

/// The state of a job.
#[derive(Clone, Debug)]
pub(super) struct JobState {
    pub(super) workload: WorkloadId,
    pub(super) queue: NodeId,
    pub(super) phase: Phase,
    /// Its position by name.
    pub(super) rank: usize,
    pub(super) remaining_s: i64,
    /// The index of its pod sets in [`PodSetTemplates`].
    pub(super) pod_sets: usize,
    pub(super) held: HeldQuota,
    /// Whether backfill has planned its start.
    pub(super) is_start_planned: bool,
    /// As in the core after the last cycle.
    pub(super) tried_flavors: TriedFlavors,
    pub(super) runs: Vec<Run>,
}

impl JobState {
    /// Adds a run.
    pub(super) fn push_run(&mut self, run: Run) {
        if self.runs.len() < FEW_RUNS {
            self.runs.reserve_exact(1);
        }
        self.runs.push(run);
    }
}

/// The pod sets of all jobs in the units of the core. Shared ones are stored once.
#[derive(Clone, Debug, Default)]
pub(super) struct PodSetTemplates {
    templates: Vec<Vec<PodSet>>,
}

impl PodSetTemplates {
    /// Returns the pod sets of a job for the core.
    pub(super) fn get(&self, at: usize) -> Vec<PodSet> {
        self.templates.get(at).cloned().unwrap_or_default()
    }
}

/// The ClusterQueues whose jobs are limited by nodes only: they place jobs, and have no resource groups.
pub(super) fn queues_without_quota(trace: &JobTrace) -> BTreeSet<&str> {
    let queues = trace.cluster_queues.iter();
    let queues = queues.filter(|queue| {
        let placement = trace.placement.as_ref();
        queue.resource_groups.is_empty() && placement.is_some_and(|it| it.places(&queue.name))
    });
    queues.map(|it| it.name.as_str()).collect()
}

/// Returns the states of all jobs before the simulation, and their pod sets.
pub(super) fn initial_jobs(
    trace: &JobTrace,
    state: &mut State,
) -> (Vec<JobState>, PodSetTemplates) {
    let mut by_name: Vec<usize> = (0..trace.jobs.len()).collect();
    by_name.sort_by_key(|job| trace.jobs.get(*job).map(|it| &*it.name));
    let mut ranks = vec![0; trace.jobs.len()];
    for (rank, job) in by_name.into_iter().enumerate() {
        if let Some(slot) = ranks.get_mut(job) {
            *slot = rank;
        }
    }
    let mut templates = PodSetTemplates::default();
    // By address: shared pod sets have the same.
    let mut known = BTreeMap::new();
    let without_quota = queues_without_quota(trace);
    let jobs = trace.jobs.iter().zip(ranks).map(|(job, rank)| {
        let count = templates.templates.len();
        let has_quota = !without_quota.contains(&*job.cluster_queue);
        let key = (Arc::as_ptr(&job.pod_sets), has_quota);
        let pod_sets = *known.entry(key).or_insert(count);
        if pod_sets == count {
            let mut converted = core_pod_sets(state, &job.pod_sets);
            if !has_quota {
                for pod_set in &mut converted {
                    pod_set.requests = [].into();
                }
            }
            templates.templates.push(converted);
        }
        JobState {
            workload: WorkloadId::default(),
            queue: state.queue(&job.cluster_queue).unwrap_or_default(),
            phase: Phase::NotArrived,
            rank,
            remaining_s: job.run_s(),
            pod_sets,
            held: HeldQuota::new(),
            is_start_planned: false,
            tried_flavors: TriedFlavors::new(),
            runs: Vec::new(),
        }
    });
    (jobs.collect(), templates)
}
