//! Waits, slowdowns and preemptions of groups of jobs.

use super::job_trace::{Job, JobTrace, PreemptedRun};
use super::lost_time::lost_s;
use super::ratio::ratio;
use super::result::{JobTimeline, NotReadyEviction, RunEnd, Timeline, WaitTimes};
use super::stats::{percentile, wait_times};
use serde::Serialize;
use std::collections::BTreeMap;

/// The jobs of a ClusterQueue or of a priority.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupMetrics {
    /// The ClusterQueue or the priority.
    pub name: String,
    /// The number of jobs.
    pub jobs: usize,
    /// The jobs that finished.
    pub finished: usize,
    /// The jobs that were never admitted.
    pub never_admitted: usize,
    /// The preemptions of these jobs.
    pub preemptions: usize,
    /// The evictions of these jobs because their pods were not ready. Left out of JSON if the trace does not say when they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods_ready: Option<GroupPodsReady>,
    /// The seconds of preempted and evicted runs that have to be repeated.
    pub lost_seconds: i64,
    /// The times from creation to first admission.
    pub wait: WaitTimes,
    /// The slowdown of the finished jobs.
    pub slowdown: Slowdown,
}

/// What happened to a group because pods were not ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupPodsReady {
    /// The evictions.
    pub evictions: usize,
    /// The jobs that were deactivated.
    pub deactivated: usize,
}

/// The time from creation to the end divided by the run time, over all finished jobs. 1 is the least. Percentiles are nearest
/// ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Slowdown {
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// The values of a group.
#[derive(Clone, Debug, Default)]
struct Group {
    jobs: usize,
    finished: usize,
    never_admitted: usize,
    preemptions: usize,
    pods_ready: GroupPodsReady,
    lost_s: i64,
    waits_s: Vec<i64>,
    /// In thousandths.
    slowdowns: Vec<i64>,
}

/// The groups by ClusterQueue, in the order of the trace; queues without jobs are left out.
pub(super) fn by_queue(trace: &JobTrace, timeline: &Timeline) -> Vec<GroupMetrics> {
    let order = trace.cluster_queues.iter().enumerate();
    let order: BTreeMap<&str, usize> = order.map(|(at, it)| (it.name.as_str(), at)).collect();
    let groups = groups(trace, timeline, |job| {
        order
            .get(&*job.cluster_queue)
            .copied()
            .unwrap_or(usize::MAX)
    });
    let groups = groups.into_iter().map(|(at, group)| {
        let queue = trace.cluster_queues.get(at);
        let name = queue.map_or_else(String::new, |it| it.name.clone());
        group.metrics(name, timeline)
    });
    groups.collect()
}

/// The groups by priority, the highest first.
pub(super) fn by_priority(trace: &JobTrace, timeline: &Timeline) -> Vec<GroupMetrics> {
    let groups = groups(trace, timeline, |job| job.priority)
        .into_iter()
        .rev();
    let groups = groups.map(|(priority, group)| group.metrics(priority.to_string(), timeline));
    groups.collect()
}

fn groups<K: Ord>(
    trace: &JobTrace,
    timeline: &Timeline,
    key: impl Fn(&Job) -> K,
) -> BTreeMap<K, Group> {
    let mut groups: BTreeMap<K, Group> = BTreeMap::new();
    for (job, history) in trace.jobs.iter().zip(&timeline.jobs) {
        let group = groups.entry(key(job)).or_default();
        group.add(job, history, trace.mode);
    }
    groups
}

impl Group {
    fn add(&mut self, job: &Job, history: &JobTimeline, mode: PreemptedRun) {
        self.jobs = self.jobs.saturating_add(1);
        match history.runs.first() {
            Some(first) => self
                .waits_s
                .push(first.from_s.saturating_sub(job.created_s())),
            None => self.never_admitted = self.never_admitted.saturating_add(1),
        }
        for run in &history.runs {
            match run.end {
                RunEnd::Open | RunEnd::Evicted(_) => {}
                RunEnd::Finished(at_s) => {
                    self.finished = self.finished.saturating_add(1);
                    let took_s = at_s.saturating_sub(job.created_s());
                    let slowdown = took_s.saturating_mul(1_000).checked_div(job.run_seconds);
                    self.slowdowns.extend(slowdown);
                }
                RunEnd::Preempted(_) => self.preemptions = self.preemptions.saturating_add(1),
                RunEnd::NotReady(eviction) => self.pods_ready.add(&eviction),
            }
            self.lost_s = self.lost_s.saturating_add(lost_s(run, mode));
        }
    }

    fn metrics(self, name: String, timeline: &Timeline) -> GroupMetrics {
        GroupMetrics {
            name,
            jobs: self.jobs,
            finished: self.finished,
            never_admitted: self.never_admitted,
            preemptions: self.preemptions,
            pods_ready: timeline.stats.pods_ready.as_ref().map(|_| self.pods_ready),
            lost_seconds: self.lost_s,
            wait: wait_times(self.waits_s),
            slowdown: slowdown(self.slowdowns),
        }
    }
}

impl GroupPodsReady {
    fn add(&mut self, eviction: &NotReadyEviction) {
        self.evictions = self.evictions.saturating_add(1);
        if eviction.is_deactivation() {
            self.deactivated = self.deactivated.saturating_add(1);
        }
    }
}

/// `slowdowns` are in thousandths.
fn slowdown(mut slowdowns: Vec<i64>) -> Slowdown {
    slowdowns.sort_unstable();
    let part = |percent| ratio(i128::from(percentile(&slowdowns, percent)), 1_000);
    let sum = slowdowns.iter().map(|it| i128::from(*it));
    let sum = sum.fold(0, i128::saturating_add);
    let count = i128::try_from(slowdowns.len()).unwrap_or(i128::MAX);
    Slowdown {
        p50: part(50),
        p90: part(90),
        p95: part(95),
        p99: part(99),
        max: part(100),
        mean: ratio(sum, count.saturating_mul(1_000)),
    }
}
