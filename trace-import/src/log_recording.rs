//! The decisions of a controller's log as a trace and its timeline.

use crate::cluster_dump::scenario_pod_set;
use crate::dump_queues::{cohorts, resource_groups, scenario_queue};
use lockkeeper_api::{ClusterQueue, Cohort, Workload};
use lockkeeper_cluster_state::journal::{ClusterEvent, CycleRecord, ObjectChange};
use lockkeeper_cluster_state::{ClusterState, workload_key};
use lockkeeper_decision_log::ReplayObserver;
use lockkeeper_preemption::{Cycle, Decision, PreemptionReason, State, WorkloadView};
use lockkeeper_scenario as scenario;
use lockkeeper_simulate::timeline::{
    Eviction, Job, JobTrace, PodSetTable, PreemptedRun, QuotaChange, Run, RunAssignment, RunEnd,
    Timeline, recorded_timeline,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A trace and its timeline, from a log.
#[derive(Clone, Debug)]
pub struct LogRecording {
    /// The queues and workloads. The run times are those of the log.
    pub trace: JobTrace,
    /// What happened.
    pub timeline: Timeline,
    /// The start of the log, in milliseconds since 1970: second 0 of the trace.
    pub from_ms: i64,
}

/// Records what happens in a replay: observe it with [`Replay`](lockkeeper_decision_log::Replay), then call
/// [`finish`](Self::finish). Costs the logarithm of the number of workloads for each event.
#[derive(Clone, Debug, Default)]
pub struct LogRecorder {
    from_ms: Option<i64>,
    to_ms: i64,
    cycles: u64,
    queues: BTreeMap<String, QueueRecord>,
    changes: Vec<QuotaChange>,
    cohorts: BTreeMap<String, Cohort>,
    jobs: Vec<JobRecord>,
    /// The current job of each workload, `namespace/name`.
    by_key: BTreeMap<String, usize>,
    /// The workloads of the file before that the current file has not named yet.
    unseen: BTreeSet<String>,
    pod_sets: PodSetTable,
}

/// A ClusterQueue as it was first, and its last resource groups.
#[derive(Clone, Debug)]
struct QueueRecord {
    first: scenario::ClusterQueue,
    last: Vec<scenario::ResourceGroup>,
}

/// A workload, and its runs so far.
#[derive(Clone, Debug)]
struct JobRecord {
    key: String,
    uid: String,
    cluster_queue: String,
    priority: i32,
    /// In milliseconds since 1970.
    created_ms: i64,
    /// When the log first has it, in milliseconds since 1970.
    seen_ms: i64,
    pod_sets: Arc<[scenario::PodSet]>,
    runs: Vec<RunRecord>,
}

#[derive(Clone, Debug)]
struct RunRecord {
    from_ms: i64,
    cycle: u64,
    assignment: RunAssignment,
    /// Its preemption, until it has released its quota.
    preemption: Option<PreemptionRecord>,
    /// Its end, in milliseconds since 1970.
    end: Option<(i64, EndKind)>,
    /// Whether its admission was withdrawn; the next event of the workload may show that it was written nevertheless.
    is_withdrawn: bool,
}

#[derive(Clone, Debug)]
struct PreemptionRecord {
    at_ms: i64,
    cycle: u64,
    /// The index of the preemptor in [`LogRecorder::jobs`].
    preemptor: usize,
    reason: PreemptionReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndKind {
    Finished,
    Released,
}

impl ReplayObserver for LogRecorder {
    fn begin_file(&mut self) {
        self.unseen = self.by_key.keys().cloned().collect();
    }

    fn after_event(&mut self, cluster: &ClusterState, event: &ClusterEvent) {
        match event {
            ClusterEvent::Time(now_ms) => {
                self.from_ms.get_or_insert(*now_ms);
                self.to_ms = *now_ms;
            }
            ClusterEvent::Object(ObjectChange::ClusterQueue(queue)) => self.set_queue(queue),
            ClusterEvent::Object(ObjectChange::Cohort(cohort)) => {
                let name = cohort.metadata.name.clone().unwrap_or_default();
                self.cohorts.insert(name, Cohort::clone(cohort));
            }
            ClusterEvent::Workload(workload) => {
                let key = workload_key(workload);
                self.unseen.remove(&key);
                self.set_workload(cluster, &key, Some(workload), || admitted(workload));
            }
            ClusterEvent::WorkloadSynced(key) | ClusterEvent::Evicted(key) => {
                self.set_workload(cluster, key, None, RunAssignment::default);
            }
            ClusterEvent::AdmissionReverted(key) => {
                if let Some(run) = self.open_run(key) {
                    run.is_withdrawn = true;
                }
            }
            ClusterEvent::WorkloadRemoved(key) => self.remove(key),
            _ => {}
        }
    }

    fn after_cycle(&mut self, cluster: &ClusterState, cycle: &Cycle, record: &CycleRecord) {
        for key in std::mem::take(&mut self.unseen) {
            self.remove(&key);
        }
        self.cycles = self.cycles.saturating_add(1);
        let state = cluster.state();
        for entry in &cycle.entries {
            let name = state.workload_name(entry.workload);
            match &entry.decision {
                Decision::Admit => {
                    self.drop_withdrawn_run(name);
                    self.set_workload(cluster, name, None, || decided(record, name));
                }
                Decision::Preempt(victims) => {
                    self.know_job(state, name, state.workload_view(entry.workload), None);
                    let Some(preemptor) = self.by_key.get(name).copied() else {
                        continue;
                    };
                    for victim in victims {
                        let key = state.workload_name(victim.workload);
                        let preemption = PreemptionRecord {
                            at_ms: self.to_ms,
                            cycle: self.cycles,
                            preemptor,
                            reason: victim.reason,
                        };
                        // Later cycles name a victim again, until it has released its quota.
                        if let Some(run) = self.open_run(key) {
                            run.preemption.get_or_insert(preemption);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

impl LogRecorder {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn set_queue(&mut self, queue: &ClusterQueue) {
        let name = queue.metadata.name.clone().unwrap_or_default();
        let groups = resource_groups(&queue.spec);
        let at = self.second(self.to_ms);
        let Some(known) = self.queues.get_mut(&name) else {
            let first = scenario_queue(&name, queue, false);
            let record = QueueRecord {
                first,
                last: groups,
            };
            self.queues.insert(name, record);
            return;
        };
        if known.last != groups {
            known.last.clone_from(&groups);
            self.changes.push(QuotaChange {
                at,
                cluster_queue: name,
                resource_groups: groups,
            });
        }
    }

    /// Brings the runs of a workload up to date with the state. `changed` is its object, if that has changed; `assignment`
    /// is that of a run that begins.
    fn set_workload(
        &mut self,
        cluster: &ClusterState,
        key: &str,
        changed: Option<&Workload>,
        assignment: impl FnOnce() -> RunAssignment,
    ) {
        let state = cluster.state();
        let view = state.workload(key).map(|it| state.workload_view(it));
        if let Some(view) = view {
            self.know_job(state, key, view, changed);
        }
        let reservation = view.and_then(WorkloadView::reservation);
        let (now_ms, cycle) = (self.to_ms, self.cycles);
        let job = self.by_key.get(key);
        let Some(job) = job.and_then(|it| self.jobs.get_mut(*it)) else {
            return;
        };
        let open = job.runs.last_mut().filter(|it| it.end.is_none());
        match (open, reservation) {
            (Some(run), Some(_)) => run.is_withdrawn = false,
            (Some(run), None) if !run.is_withdrawn => {
                // A finished workload is no longer in the state.
                let kind = if changed.is_some_and(is_finished) {
                    EndKind::Finished
                } else {
                    EndKind::Released
                };
                run.end = Some((now_ms, kind));
            }
            (Some(_), None) => {
                job.runs.pop();
            }
            (None, Some(reservation)) => {
                let reserved_ms = reservation.reserved_at_s.saturating_mul(1000);
                job.runs.push(RunRecord {
                    // Its admission was before the log.
                    from_ms: changed.map_or(now_ms, |_| reserved_ms),
                    cycle,
                    assignment: assignment(),
                    preemption: None,
                    end: None,
                    is_withdrawn: false,
                });
            }
            (None, None) => {}
        }
    }

    /// Adds the job of a workload that is in a queue for the first time.
    fn know_job(
        &mut self,
        state: &State,
        key: &str,
        view: WorkloadView<'_>,
        changed: Option<&Workload>,
    ) {
        let known = self.by_key.get(key).and_then(|it| self.jobs.get(*it));
        if known.is_some_and(|it| it.uid == view.uid()) {
            return;
        }
        let Some(queue) = view.queue() else {
            return;
        };
        self.remove(key);
        let pod_sets = view.pod_sets().iter();
        let pod_sets = pod_sets.map(|it| scenario_pod_set(state, it)).collect();
        let created = changed.and_then(|it| it.metadata.creation_timestamp.as_ref());
        let job = JobRecord {
            key: key.to_owned(),
            uid: view.uid().to_owned(),
            cluster_queue: state.node_view(queue).name().to_owned(),
            priority: view.priority(),
            created_ms: created.map_or(self.to_ms, |it| it.0.as_millisecond()),
            seen_ms: self.to_ms,
            pod_sets: self.pod_sets.share(pod_sets),
            runs: Vec::new(),
        };
        self.by_key.insert(key.to_owned(), self.jobs.len());
        self.jobs.push(job);
    }

    /// Ends the run of a workload that exists no more.
    fn remove(&mut self, key: &str) {
        let now_ms = self.to_ms;
        if let Some(run) = self.open_run(key) {
            run.end = Some((now_ms, EndKind::Released));
        }
        self.by_key.remove(key);
    }

    /// Removes a run whose admission was withdrawn, and not written.
    fn drop_withdrawn_run(&mut self, key: &str) {
        let job = self.by_key.get(key);
        if let Some(job) = job.and_then(|it| self.jobs.get_mut(*it)) {
            job.runs.pop_if(|it| it.is_withdrawn);
        }
    }

    fn open_run(&mut self, key: &str) -> Option<&mut RunRecord> {
        let job = self.jobs.get_mut(*self.by_key.get(key)?)?;
        job.runs.last_mut().filter(|it| it.end.is_none())
    }

    /// The second of the trace; negative before the log.
    fn second(&self, ms: i64) -> i64 {
        let from_ms = self.from_ms.unwrap_or(self.to_ms);
        ms.saturating_sub(from_ms).div_euclid(1000)
    }

    /// The trace and the timeline; `None` if the log has no workload in a queue.
    #[must_use]
    pub fn finish(mut self) -> Option<LogRecording> {
        let until_s = self.second(self.to_ms);
        for job in &mut self.jobs {
            job.runs.retain(|it| !it.is_withdrawn);
        }
        let mut records: Vec<(usize, JobRecord)> = std::mem::take(&mut self.jobs)
            .into_iter()
            .enumerate()
            .collect();
        records.sort_by_key(|(_, it)| it.seen_ms);
        let positions = records
            .iter()
            .enumerate()
            .map(|(at, (index, _))| (*index, at));
        let positions: BTreeMap<usize, usize> = positions.collect();
        let mut records: Vec<JobRecord> = records.into_iter().map(|(_, it)| it).collect();
        number_names(&mut records);
        let runs: Vec<Vec<Run>> = records
            .iter()
            .map(|record| {
                let runs = record.runs.iter();
                runs.map(|it| self.run(it, &positions)).collect()
            })
            .collect();
        let jobs: Vec<Job> = records
            .iter()
            .zip(&runs)
            .map(|(record, runs)| self.job(record, runs, until_s))
            .collect();
        if jobs.is_empty() {
            return None;
        }
        let cohort_objects: Vec<Cohort> = self.cohorts.values().cloned().collect();
        let trace = JobTrace {
            // The log does not say whether a job repeats the work before its preemption.
            mode: PreemptedRun::Resume,
            // A victim holds its quota until its pods have stopped.
            grace_period_seconds: 1,
            cohorts: cohorts(&cohort_objects),
            cluster_queues: self.queues.values().map(|it| it.first.clone()).collect(),
            jobs: Arc::new(jobs),
            changes: self.changes.clone(),
            ..JobTrace::default()
        };
        let timeline = recorded_timeline(&trace, runs, self.cycles, until_s);
        Some(LogRecording {
            trace,
            timeline,
            from_ms: self.from_ms.unwrap_or_default(),
        })
    }

    fn run(&self, record: &RunRecord, positions: &BTreeMap<usize, usize>) -> Run {
        let end_s = record.end.map(|(at_ms, kind)| (self.second(at_ms), kind));
        let end = match (&record.preemption, end_s) {
            (_, Some((at_s, EndKind::Finished))) => RunEnd::Finished(at_s),
            (Some(preemption), released) => RunEnd::Preempted(Eviction {
                at_s: self.second(preemption.at_ms),
                cycle: preemption.cycle,
                by: positions
                    .get(&preemption.preemptor)
                    .copied()
                    .unwrap_or_default(),
                reason: preemption.reason.into(),
                released_at_s: released.map(|(at_s, _)| at_s),
            }),
            (None, Some((at_s, EndKind::Released))) => RunEnd::Evicted(at_s),
            (None, None) => RunEnd::Open,
        };
        let from_s = self.second(record.from_ms);
        Run {
            from_s,
            cycle: record.cycle,
            assignment: Arc::new(record.assignment.clone()),
            nodes: None,
            // The log does not say when they were ready.
            ready_at_s: Some(from_s),
            end,
        }
    }

    fn job(&self, record: &JobRecord, runs: &[Run], until_s: i64) -> Job {
        let arrival = self.second(record.seen_ms);
        let created_s = self.second(record.created_ms).min(arrival);
        let first = runs.first();
        // A workload that already ran at the start of the log.
        let ran_s = first.map_or(0, |it| it.from_s.saturating_neg()).max(0);
        let last_run_s = runs.last().map_or(0, |run| {
            let end_s = match run.end {
                RunEnd::Finished(at_s) | RunEnd::Evicted(at_s) => at_s,
                RunEnd::Preempted(eviction) => eviction.at_s,
                RunEnd::NotReady(eviction) => eviction.at_s,
                RunEnd::Open => until_s,
            };
            end_s.saturating_sub(run.from_s)
        });
        Job {
            name: record.key.as_str().into(),
            uid: record.uid.clone(),
            cluster_queue: record.cluster_queue.as_str().into(),
            arrival,
            waited_seconds: arrival.saturating_sub(created_s),
            ran_seconds: (ran_s > 0).then_some(ran_s),
            run_seconds: last_run_s.max(1),
            ready_seconds: None,
            maximum_execution_time_seconds: None,
            priority: record.priority,
            pod_sets: Arc::clone(&record.pod_sets),
        }
    }
}

/// Makes the names unique: a workload that was created again has a number.
fn number_names(records: &mut [JobRecord]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for record in records {
        let count = counts.entry(record.key.clone()).or_default();
        *count = count.saturating_add(1);
        if *count > 1 {
            record.key = format!("{} ({count})", record.key);
        }
    }
}

/// The flavors and numbers of pods in the status of a workload.
fn admitted(workload: &Workload) -> RunAssignment {
    let status = workload.status.as_ref();
    let admission = status.and_then(|it| it.admission.as_ref());
    let assignments = admission.map_or(&[][..], |it| &it.pod_set_assignments);
    let of_pod_sets = workload.spec.pod_sets.iter().map(|pod_set| {
        let mut assignments = assignments.iter();
        assignments.find(|it| it.name == pod_set.name())
    });
    let of_pod_sets: Vec<_> = of_pod_sets.collect();
    RunAssignment {
        flavors: of_pod_sets
            .iter()
            .map(|it| it.map(|it| it.flavors.clone()).unwrap_or_default())
            .collect(),
        counts: Some(
            of_pod_sets
                .iter()
                .map(|it| it.map_or(0, |it| i64::from(it.count)))
                .collect(),
        ),
    }
}

/// The flavors and numbers of pods of a decision.
fn decided(record: &CycleRecord, workload: &str) -> RunAssignment {
    let mut decisions = record.decisions.iter();
    let decision = decisions.find(|it| &*it.workload == workload);
    let pod_sets = decision.map_or(&[][..], |it| &it.pod_sets);
    RunAssignment {
        flavors: pod_sets.iter().map(|it| it.flavors.clone()).collect(),
        counts: Some(pod_sets.iter().map(|it| it.count).collect()),
    }
}

fn is_finished(workload: &Workload) -> bool {
    let mut conditions = workload.status.iter().flat_map(|it| &it.conditions);
    conditions.any(|it| it.type_ == "Finished" && it.status == "True")
}
