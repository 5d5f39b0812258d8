//! The result of a simulation, and its JSON format.

use super::pods_ready_stats::PodsReadyStats;
use lockkeeper_preemption::PreemptionReason;
use lockkeeper_preemption::requeue;
use serde::ser::{SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a simulation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All jobs have finished, or were deactivated.
    Drained,
    /// Nothing is due any more, and some jobs are still pending, or wait without end for pods that are never ready.
    Stuck,
    /// The limit on cycles in one instant was reached: workloads preempt each other without end.
    Livelock,
    /// The limit on preemptions was reached: workloads preempt each other without end, and time proceeds. Or only jobs
    /// remain whose pods are never ready, and which are requeued without end.
    Loop,
    /// Not simulated: the timeline is that of a real scheduler, until its record ends.
    Recorded,
}

/// The timeline of all jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// How the simulation ended.
    pub outcome: Outcome,
    /// The time of the last finish, in seconds.
    pub makespan_s: i64,
    /// The number of cycles.
    pub cycles: u64,
    /// The instants with cycles: their time in seconds and the number of cycles.
    pub instants: Vec<(i64, u64)>,
    /// The jobs, in the order of the trace.
    pub jobs: Vec<JobTimeline>,
    /// The names of the ClusterQueues, in the order of the trace.
    pub queues: Vec<String>,
    /// All events, in order.
    pub events: Vec<Event>,
    /// The planned starts of jobs that waited at the head of a queue with backfill, in the order in which they were first
    /// planned. Later plans of a job are not recorded.
    pub planned_starts: Vec<PlannedStart>,
    /// Sums over all jobs.
    pub stats: Stats,
    /// The used quota, sorted by the names of queue, flavor and resource.
    pub usage: Vec<QuotaUsage>,
}

/// The timeline of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTimeline {
    /// Its name.
    pub name: Arc<str>,
    /// Its runs, the earliest first; none if it was never admitted.
    pub runs: Vec<Run>,
}

/// The time from an admission to the end of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// When it was admitted, in seconds.
    pub from_s: i64,
    /// The cycle that admitted it.
    pub cycle: u64,
    /// Its flavors and numbers of pods. Equal ones are shared.
    pub assignment: Arc<RunAssignment>,
    /// Its nodes, if its queue places jobs on nodes.
    pub nodes: Option<RunNodes>,
    /// When its pods were ready, in seconds; `None` if they were not.
    pub ready_at_s: Option<i64>,
    /// Its end.
    pub end: RunEnd,
}

/// The nodes of the pods of a run: by pod set, the number of pods on each node.
pub type RunNodes = Arc<[BTreeMap<String, i32>]>;

/// The flavors and the numbers of pods of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunAssignment {
    /// By pod set: the flavor of each resource.
    pub flavors: Vec<BTreeMap<String, String>>,
    /// By pod set: the number of pods, if some pod set got fewer than it requests.
    pub counts: Option<Vec<i64>>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The simulation has ended before.
    Open,
    /// The job finished at this time, in seconds.
    Finished(i64),
    /// The job was preempted.
    Preempted(Eviction),
    /// The job was evicted because its pods were not ready in time.
    NotReady(NotReadyEviction),
    /// The job lost its quota at this time for another reason, in seconds. Simulations have no such end.
    Evicted(i64),
}

/// The end of a run by preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// When it was preempted, in seconds.
    pub at_s: i64,
    /// The cycle.
    pub cycle: u64,
    /// The index of the preemptor.
    pub by: usize,
    /// The reason.
    pub reason: EvictionReason,
    /// When it released its quota, if it had a grace period and the period has ended.
    pub released_at_s: Option<i64>,
}

/// The end of a run whose pods were not ready in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotReadyEviction {
    /// When it was evicted, in seconds.
    pub at_s: i64,
    /// The reason: the timeout, or the deactivation beyond the limit of requeueing.
    pub reason: requeue::EvictionReason,
    /// When it released its quota, if it had a grace period and the period has ended.
    pub released_at_s: Option<i64>,
}

impl NotReadyEviction {
    /// Whether the job is deactivated: it is not requeued.
    #[must_use]
    pub const fn is_deactivation(&self) -> bool {
        matches!(self.reason, requeue::EvictionReason::Deactivated(_))
    }
}

/// Why a job was preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionReason {
    /// For quota.
    Quota(PreemptionReason),
    /// For its nodes.
    Nodes,
}

impl EvictionReason {
    /// The reason in conditions and results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quota(reason) => reason.as_str(),
            Self::Nodes => "OnNodes",
        }
    }
}

impl From<PreemptionReason> for EvictionReason {
    fn from(reason: PreemptionReason) -> Self {
        Self::Quota(reason)
    }
}

/// The first planned start of a job in a queue with backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedStart {
    /// The index of the job.
    pub job: usize,
    /// When it was planned, in seconds.
    pub planned_at_s: i64,
    /// The planned start, in seconds.
    pub starts_by_s: i64,
    /// Whether other queues cannot delay it. The job starts at that time at the latest, unless a job of higher priority
    /// arrives, a preempted or requeued one returns, or the quota changes.
    pub is_guaranteed: bool,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in seconds.
    pub at_s: i64,
    /// The change.
    pub kind: EventKind,
}

/// The change of an event. Jobs and queues are indices into [`Timeline::jobs`] and [`Timeline::queues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A job was admitted.
    Admitted {
        /// The job.
        job: usize,
        /// The cycle.
        cycle: u64,
    },
    /// A job was preempted.
    Preempted {
        /// The victim.
        job: usize,
        /// The preemptor.
        by: usize,
        /// The cycle.
        cycle: u64,
    },
    /// A preempted or evicted job released its quota after its grace period.
    Released {
        /// The job.
        job: usize,
    },
    /// The pods of a job are ready, some time after its admission.
    Ready {
        /// The job.
        job: usize,
    },
    /// A job was evicted because its pods were not ready in time.
    Evicted {
        /// The job.
        job: usize,
        /// The reason.
        reason: requeue::EvictionReason,
    },
    /// An evicted job is in its queue again.
    Requeued {
        /// The job.
        job: usize,
    },
    /// A job finished.
    Finished {
        /// The job.
        job: usize,
    },
    /// The quota of a ClusterQueue changed.
    Changed {
        /// The queue.
        queue: usize,
    },
}

/// Sums over all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The number of jobs.
    pub jobs: usize,
    /// The jobs that finished.
    pub finished: usize,
    /// The jobs that were never admitted.
    pub never_admitted: usize,
    /// The admissions; a job that is preempted may have several.
    pub admissions: usize,
    /// The admissions ahead of the head of a queue, by backfill. Left out of JSON if there are none, as in Kueue's timelines.
    #[serde(skip_serializing_if = "is_default")]
    pub backfilled: usize,
    /// The preemptions.
    pub preemptions: usize,
    /// The preemptions by reason.
    pub preemptions_by_reason: BTreeMap<&'static str, usize>,
    /// The seconds of preempted and evicted runs that have to be repeated.
    pub lost_seconds: i64,
    /// What happened because pods were not ready. Left out of JSON if the trace does not say when they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods_ready: Option<PodsReadyStats>,
    /// The times from arrival to first admission.
    pub wait: WaitTimes,
}

/// The times from arrival to first admission over all admitted jobs, in seconds. Percentiles are nearest ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitTimes {
    /// The median.
    pub p50: i64,
    /// The 90th percentile.
    pub p90: i64,
    /// The 95th percentile.
    pub p95: i64,
    /// The 99th percentile.
    pub p99: i64,
    /// The longest.
    pub max: i64,
    /// The sum.
    pub sum: i64,
}

/// The use of one quota over the whole simulation. The last instant of a livelock is not included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaUsage {
    /// The ClusterQueue.
    pub cluster_queue: String,
    /// The flavor.
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The used amount times seconds, in the unit of the resource.
    pub integral: i64,
    /// The largest amount in use at the end of an instant.
    pub peak: i64,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Serializes a value that depends on the timeline, such as the name of a job.
struct InTimeline<'a, T>(&'a Timeline, T);

impl Timeline {
    /// Until when the use of quota counts, in seconds: the makespan; or the last event of a loop, or of a trace that says when
    /// pods are ready, because a job may be evicted after the last one finished.
    #[must_use]
    pub fn measured_until_s(&self) -> i64 {
        let last = if self.outcome == Outcome::Loop {
            self.events.last()
        } else if self.stats.pods_ready.is_some() {
            let mut events = self.events.iter();
            events.rfind(|it| !matches!(it.kind, EventKind::Changed { .. }))
        } else {
            None
        };
        last.map_or(self.makespan_s, |it| it.at_s)
    }

    fn job_name(&self, job: usize) -> &str {
        self.jobs.get(job).map_or("", |it| &it.name)
    }
}

impl Serialize for Timeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize_with_usage(serializer, &self.usage)
    }
}

impl Timeline {
    /// Serializes the timeline with other rows for the use of quota.
    pub(super) fn serialize_with_usage<S: Serializer>(
        &self,
        serializer: S,
        usage: &impl Serialize,
    ) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Timeline", 9)?;
        object.serialize_field("outcome", &self.outcome)?;
        object.serialize_field("makespan", &self.makespan_s)?;
        object.serialize_field("cycles", &self.cycles)?;
        object.serialize_field("stats", &self.stats)?;
        object.serialize_field("usage", usage)?;
        object.serialize_field("jobs", &InTimeline(self, &*self.jobs))?;
        object.serialize_field("instants", &self.instants)?;
        object.serialize_field("events", &InTimeline(self, &*self.events))?;
        if !self.planned_starts.is_empty() {
            let starts = InTimeline(self, &*self.planned_starts);
            object.serialize_field("plannedStarts", &starts)?;
        }
        object.end()
    }
}

impl Serialize for InTimeline<'_, &[JobTimeline]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|job| InTimeline(self.0, job)))
    }
}

impl Serialize for InTimeline<'_, &JobTimeline> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Job", 2)?;
        object.serialize_field("name", &self.1.name)?;
        object.serialize_field("runs", &InTimeline(self.0, &*self.1.runs))?;
        object.end()
    }
}

impl Serialize for InTimeline<'_, &[Run]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|run| InTimeline(self.0, run)))
    }
}

impl Serialize for InTimeline<'_, &Run> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let run = self.1;
        let (to_s, end) = match run.end {
            RunEnd::Open => (0, "open"),
            RunEnd::Finished(at_s) => (at_s, "finished"),
            RunEnd::Preempted(eviction) => (eviction.at_s, "preempted"),
            RunEnd::NotReady(eviction) => (eviction.at_s, "evicted"),
            RunEnd::Evicted(at_s) => (at_s, "evicted"),
        };
        let mut object = serializer.serialize_struct("Run", 12)?;
        object.serialize_field("from", &run.from_s)?;
        object.serialize_field("cycle", &run.cycle)?;
        object.serialize_field("flavors", &run.assignment.flavors)?;
        if let Some(counts) = &run.assignment.counts {
            object.serialize_field("counts", counts)?;
        }
        if let Some(nodes) = &run.nodes {
            object.serialize_field("nodes", &**nodes)?;
        }
        if self.0.stats.pods_ready.is_some() {
            object.serialize_field("ready", &run.ready_at_s)?;
        }
        object.serialize_field("to", &to_s)?;
        object.serialize_field("end", end)?;
        if let RunEnd::Preempted(eviction) = run.end {
            object.serialize_field("by", self.0.job_name(eviction.by))?;
            object.serialize_field("reason", eviction.reason.as_str())?;
            object.serialize_field("endCycle", &eviction.cycle)?;
            if let Some(released_at_s) = eviction.released_at_s {
                object.serialize_field("released", &released_at_s)?;
            }
        }
        if let RunEnd::NotReady(eviction) = run.end {
            object.serialize_field("reason", eviction.reason.as_str())?;
            if let Some(released_at_s) = eviction.released_at_s {
                object.serialize_field("released", &released_at_s)?;
            }
        }
        object.end()
    }
}

impl Serialize for InTimeline<'_, &[Event]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|event| InTimeline(self.0, event)))
    }
}

impl Serialize for InTimeline<'_, &Event> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let timeline = self.0;
        let (cycle, change, name) = match self.1.kind {
            EventKind::Admitted { job, cycle } => (Some(cycle), "admitted", timeline.job_name(job)),
            EventKind::Preempted { job, cycle, .. } => {
                (Some(cycle), "preempted", timeline.job_name(job))
            }
            EventKind::Released { job } => (None, "released", timeline.job_name(job)),
            EventKind::Finished { job } => (None, "finished", timeline.job_name(job)),
            EventKind::Ready { job } => (None, "ready", timeline.job_name(job)),
            EventKind::Evicted { job, .. } => (None, "evicted", timeline.job_name(job)),
            EventKind::Requeued { job } => (None, "requeued", timeline.job_name(job)),
            EventKind::Changed { queue } => {
                let name = timeline.queues.get(queue).map_or("", String::as_str);
                (None, "changed", name)
            }
        };
        let mut list = serializer.serialize_seq(None)?;
        list.serialize_element(&self.1.at_s)?;
        list.serialize_element(&cycle)?;
        list.serialize_element(change)?;
        list.serialize_element(name)?;
        if let EventKind::Preempted { by, .. } = self.1.kind {
            list.serialize_element(timeline.job_name(by))?;
        }
        if let EventKind::Evicted { reason, .. } = self.1.kind {
            list.serialize_element(reason.as_str())?;
        }
        list.end()
    }
}

impl Serialize for InTimeline<'_, &[PlannedStart]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|it| InTimeline(self.0, it)))
    }
}

impl Serialize for InTimeline<'_, &PlannedStart> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let planned = self.1;
        let mut object = serializer.serialize_struct("PlannedStart", 4)?;
        object.serialize_field("job", self.0.job_name(planned.job))?;
        object.serialize_field("plannedAt", &planned.planned_at_s)?;
        object.serialize_field("startsBy", &planned.starts_by_s)?;
        object.serialize_field("guaranteed", &planned.is_guaranteed)?;
        object.end()
    }
}
