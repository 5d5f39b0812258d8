//! The input of a simulation: queues, jobs, and changes of quota.

use super::node_trace::TracePlacement;
use super::pod_set_table::shared;
use super::ready_time::{ReadyTime, ReadyTimes};
use lockkeeper_api::config::WaitForPodsReady;
use lockkeeper_scenario::{Algorithm, ClusterQueue, Cohort, FairSharing, PodSet, ResourceGroup};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The limit on cycles in one instant if a trace has none.
const CYCLES_PER_INSTANT_MAX: u64 = 20_000;

/// The limit on preemptions for each job of a trace if it has none. Recorded timelines of Kueue have at most 8.
const PREEMPTIONS_PER_JOB_MAX: u64 = 1_000;

/// Jobs with their arrivals and run times, and the queues that they are submitted to.
///
/// All times are whole seconds from the start of the trace, zero or more. Amounts are in the unit of the core: milli for
/// cpu, whole units for all other resources.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobTrace {
    /// The format.
    #[serde(default)]
    pub schema: String,
    /// Its name.
    #[serde(default)]
    pub id: String,
    /// The algorithm that selects victims.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Settings of fair sharing.
    #[serde(default)]
    pub fair_sharing: Option<FairSharing>,
    /// The remaining run time of a preempted job.
    #[serde(default)]
    pub mode: PreemptedRun,
    /// The seconds for which a preempted job keeps its quota.
    #[serde(default)]
    pub grace_period_seconds: i64,
    /// When the pods of jobs without times of their own are ready; at once by default.
    #[serde(default)]
    pub ready_seconds: Option<ReadyTimes>,
    /// Eviction and requeueing of jobs whose pods are not ready in time, as in the configuration of the controller.
    #[serde(default)]
    pub wait_for_pods_ready: WaitForPodsReady,
    /// The cycles in one instant after which the simulation ends with [`Outcome::Livelock`](super::Outcome::Livelock).
    #[serde(default = "cycles_per_instant_max")]
    pub max_cycles_per_instant: u64,
    /// The preemptions for each job of the trace, on average, after which the simulation ends with
    /// [`Outcome::Loop`](super::Outcome::Loop): jobs that preempt each other while time proceeds would never end.
    #[serde(default = "preemptions_per_job_max")]
    pub max_preemptions_per_job: u64,
    /// The cohorts.
    #[serde(default)]
    pub cohorts: Vec<Cohort>,
    /// The ClusterQueues.
    pub cluster_queues: Vec<ClusterQueue>,
    /// The nodes on which jobs are placed; without them nodes are not considered.
    #[serde(default)]
    pub placement: Option<TracePlacement>,
    /// The jobs, sorted by arrival. Shared by the copies of a trace with other configurations.
    #[serde(deserialize_with = "shared_jobs")]
    pub jobs: Arc<Vec<Job>>,
    /// Changes of ClusterQueues during the simulation, sorted by time.
    #[serde(default)]
    pub changes: Vec<QuotaChange>,
    /// What the source of the jobs does not say; of imported traces.
    #[serde(skip)]
    pub assumptions: Vec<Assumption>,
}

impl Default for JobTrace {
    /// A trace without queues and jobs, with the limits that a file without them has.
    fn default() -> Self {
        Self {
            schema: String::new(),
            id: String::new(),
            algorithm: Algorithm::default(),
            fair_sharing: None,
            mode: PreemptedRun::default(),
            grace_period_seconds: 0,
            ready_seconds: None,
            wait_for_pods_ready: WaitForPodsReady::default(),
            max_cycles_per_instant: CYCLES_PER_INSTANT_MAX,
            max_preemptions_per_job: PREEMPTIONS_PER_JOB_MAX,
            cohorts: Vec::new(),
            cluster_queues: Vec::new(),
            placement: None,
            jobs: Arc::default(),
            changes: Vec::new(),
            assumptions: Vec::new(),
        }
    }
}

impl JobTrace {
    /// When the pods of a job are ready, by run; `None` is at once.
    #[must_use]
    pub fn ready_times<'a>(&'a self, job: &'a Job) -> Option<&'a ReadyTimes> {
        job.ready_seconds.as_ref().or(self.ready_seconds.as_ref())
    }

    /// When the pods of a run of a job are ready. The first run has number 0.
    #[must_use]
    pub fn ready_time(&self, job: &Job, run: usize) -> ReadyTime {
        let times = self.ready_times(job);
        times.map_or(ReadyTime::After(0), |it| it.of_run(run))
    }

    /// Whether it matters when pods are ready. Costs the number of jobs.
    #[must_use]
    pub fn considers_readiness(&self) -> bool {
        let mut jobs = self.jobs.iter();
        self.wait_for_pods_ready.enable
            || self.ready_seconds.is_some()
            || jobs.any(|it| it.ready_seconds.is_some())
    }
}

/// A value that the source of a trace does not have, and what is used in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// The assumption.
    pub text: String,
    /// The number of jobs or records that it concerns.
    pub count: u64,
}

/// The remaining run time of a preempted job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PreemptedRun {
    /// The job starts again from the beginning.
    #[default]
    Restart,
    /// The job continues where it was preempted.
    Resume,
}

/// A job: one workload.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its unique name.
    pub name: Arc<str>,
    /// Its uid, compared bytewise: the last criterion of all orders.
    #[serde(default)]
    pub uid: String,
    /// Its ClusterQueue.
    pub cluster_queue: Arc<str>,
    /// When it enters its queue; also its creation time, unless it has waited before.
    pub arrival: i64,
    /// The seconds that it has waited before its arrival: of a job that is pending at the start.
    #[serde(default)]
    pub waited_seconds: i64,
    /// Of a job that runs at the start: the seconds since its admission. Its pod sets have its flavors.
    #[serde(default)]
    pub ran_seconds: Option<i64>,
    /// The seconds that it runs once its pods are ready, whatever its flavors and the number of its pods.
    pub run_seconds: i64,
    /// When its pods are ready, by run; `None` is the default of the trace.
    #[serde(default)]
    pub ready_seconds: Option<ReadyTimes>,
    /// The most seconds from the admission to the end of each run, enforced and known to backfill: a run that would be longer ends then.
    #[serde(default)]
    pub maximum_execution_time_seconds: Option<i64>,
    /// Its priority.
    #[serde(default)]
    pub priority: i32,
    /// Its pod sets. Jobs with equal ones may share them.
    pub pod_sets: Arc<[PodSet]>,
}

impl Job {
    /// The seconds of a run from its ready pods: its run time, at most its limit.
    #[must_use]
    pub fn run_s(&self) -> i64 {
        self.run_seconds.min(self.limit_s())
    }

    /// The seconds from the admission to the end of a run whose work takes so long once its pods are ready; `None` if it does
    /// not end.
    pub(super) fn length_s(&self, ready: ReadyTime, work_s: i64) -> Option<i64> {
        match (ready, self.maximum_execution_time_seconds) {
            (ReadyTime::After(ready_s), _) => {
                Some(ready_s.saturating_add(work_s).min(self.limit_s()))
            }
            (ReadyTime::Never, limit_s) => limit_s,
        }
    }

    fn limit_s(&self) -> i64 {
        self.maximum_execution_time_seconds.unwrap_or(i64::MAX)
    }

    /// When it was created, in seconds; negative before the start.
    #[must_use]
    pub const fn created_s(&self) -> i64 {
        self.arrival.saturating_sub(self.waited_seconds)
    }
}

/// New resource groups of a ClusterQueue. Its policies stay.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaChange {
    /// When the change takes effect.
    pub at: i64,
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// Its new resource groups.
    pub resource_groups: Vec<ResourceGroup>,
}

fn cycles_per_instant_max() -> u64 {
    CYCLES_PER_INSTANT_MAX
}

fn preemptions_per_job_max() -> u64 {
    PREEMPTIONS_PER_JOB_MAX
}

/// Decodes jobs, and stores equal parts of them once.
fn shared_jobs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Vec<Job>>, D::Error> {
    deserializer.deserialize_seq(JobsVisitor).map(Arc::new)
}

struct JobsVisitor;

impl<'de> Visitor<'de> for JobsVisitor {
    type Value = Vec<Job>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Job>, A::Error> {
        let mut pod_sets: BTreeSet<Arc<[PodSet]>> = BTreeSet::new();
        let mut queues: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut jobs = Vec::new();
        while let Some(mut job) = list.next_element::<Job>()? {
            job.pod_sets = shared(&mut pod_sets, job.pod_sets);
            job.cluster_queue = shared(&mut queues, job.cluster_queue);
            jobs.push(job);
        }
        Ok(jobs)
    }
}
