//! Queues and settings that replace those of a trace.

use super::job_trace::{JobTrace, PreemptedRun, QuotaChange};
use super::node_trace::TracePlacement;
use super::ready_time::ReadyTimes;
use lockkeeper_api::cluster_queue::{Backfill, QueueingStrategy};
use lockkeeper_api::config::WaitForPodsReady;
use lockkeeper_scenario::{Algorithm, ClusterQueue, Cohort, FairSharing};
use serde::Deserialize;

/// Replacements for parts of a trace, to compare configurations with the same jobs. Unknown keys are rejected, because a
/// misspelled one would have no effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct TraceConfig {
    /// The algorithm that selects victims.
    pub algorithm: Option<Algorithm>,
    /// Settings of fair sharing.
    pub fair_sharing: Option<FairSharing>,
    /// The remaining run time of a preempted job.
    pub mode: Option<PreemptedRun>,
    /// The seconds for which a preempted job keeps its quota.
    pub grace_period_seconds: Option<i64>,
    /// When the pods of jobs without times of their own are ready.
    pub ready_seconds: Option<ReadyTimes>,
    /// Eviction and requeueing of jobs whose pods are not ready in time.
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    /// The limit on cycles in one instant.
    pub max_cycles_per_instant: Option<u64>,
    /// The limit on preemptions for each job.
    pub max_preemptions_per_job: Option<u64>,
    /// All cohorts.
    pub cohorts: Option<Vec<Cohort>>,
    /// All ClusterQueues.
    pub cluster_queues: Option<Vec<ClusterQueue>>,
    /// The queueing strategy of all ClusterQueues.
    pub queueing_strategy: Option<QueueingStrategy>,
    /// The backfill of all ClusterQueues.
    pub backfill: Option<Backfill>,
    /// The nodes on which jobs are placed.
    pub placement: Option<TracePlacement>,
    /// All changes of ClusterQueues.
    pub changes: Option<Vec<QuotaChange>>,
}

impl TraceConfig {
    /// Returns the trace with the replacements.
    #[must_use]
    pub fn applied_to(&self, trace: &JobTrace) -> JobTrace {
        let mut trace = trace.clone();
        replace(&mut trace.algorithm, self.algorithm.as_ref());
        if self.fair_sharing.is_some() {
            trace.fair_sharing.clone_from(&self.fair_sharing);
        }
        replace(&mut trace.mode, self.mode.as_ref());
        replace(
            &mut trace.grace_period_seconds,
            self.grace_period_seconds.as_ref(),
        );
        if self.ready_seconds.is_some() {
            trace.ready_seconds.clone_from(&self.ready_seconds);
        }
        replace(
            &mut trace.wait_for_pods_ready,
            self.wait_for_pods_ready.as_ref(),
        );
        replace(
            &mut trace.max_cycles_per_instant,
            self.max_cycles_per_instant.as_ref(),
        );
        replace(
            &mut trace.max_preemptions_per_job,
            self.max_preemptions_per_job.as_ref(),
        );
        replace(&mut trace.cohorts, self.cohorts.as_ref());
        replace(&mut trace.cluster_queues, self.cluster_queues.as_ref());
        for queue in &mut trace.cluster_queues {
            replace(
                &mut queue.queueing_strategy,
                self.queueing_strategy.as_ref(),
            );
            if self.backfill.is_some() {
                queue.backfill = self.backfill;
            }
        }
        if self.placement.is_some() {
            trace.placement.clone_from(&self.placement);
        }
        replace(&mut trace.changes, self.changes.as_ref());
        trace
    }
}

fn replace<T: Clone>(value: &mut T, by: Option<&T>) {
    if let Some(by) = by {
        value.clone_from(by);
    }
}
