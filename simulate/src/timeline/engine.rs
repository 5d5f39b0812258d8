//! Runs a trace: instants in order, and the cycles of each.

use super::agenda::Agenda;
use super::assignments::Assignments;
use super::initial_runs::{InitialRun, initial_run};
use super::job_lifecycles::JobLifecycles;
use super::job_state::{JobState, Phase, PodSetTemplates, initial_jobs};
use super::job_trace::{Job, JobTrace};
use super::node_placement::{NodePlacement, NodePlan};
use super::queue_history::QueueHistory;
use super::result::{
    Event, EventKind, JobTimeline, Outcome, PlannedStart, Run, RunAssignment, RunEnd, RunNodes,
    Stats, Timeline,
};
use super::stats::{pods_ready_stats, stats};
use super::trace_error::TraceError;
use super::usage_record::UsageRecord;
use super::validate::validate;
use super::waiting_jobs::WaitingJobs;
use lockkeeper_preemption::job::PreemptionLabels;
use lockkeeper_preemption::{
    Compatibility, Damping, NodeId, Options, PodSet, State, WorkloadId, WorkloadSpec,
    set_execution_time_max, set_latest_end,
};
use lockkeeper_scenario::{ClusterQueue, core_algorithm, declare_cohort, declare_queue};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Runs a trace with Kueue's decisions until nothing is due any more.
///
/// Costs the decisions of all cycles, plus the logarithm of the number of jobs per event.
///
/// # Errors
///
/// A [`TraceError`] with the path of the first invalid field.
pub fn simulate(trace: &JobTrace) -> Result<Timeline, TraceError> {
    validate(trace)?;
    let mut simulation = Simulation::new(trace);
    simulation.start_running_jobs()?;
    while let Some(now_s) = simulation.next_instant_s() {
        simulation.now_s = now_s;
        if simulation.run_instant() {
            return Ok(simulation.finish(Some(Outcome::Livelock)));
        }
        simulation.usage.end_instant();
        if simulation.is_loop() {
            return Ok(simulation.finish(Some(Outcome::Loop)));
        }
    }
    Ok(simulation.finish(None))
}

/// Runs a trace until the first decision on each of the given jobs, and returns these decisions as text, by job. A job that
/// is never the head of its queue has none.
///
/// Costs at most as much as [`simulate`], and more for each cycle while one of the jobs is pending.
///
/// # Errors
///
/// As [`simulate`].
pub fn first_decisions(
    trace: &JobTrace,
    jobs: &[usize],
) -> Result<BTreeMap<usize, String>, TraceError> {
    validate(trace)?;
    let mut simulation = Simulation::new(trace);
    simulation.watched = jobs.iter().copied().collect();
    simulation.start_running_jobs()?;
    while !simulation.watched.is_empty()
        && let Some(now_s) = simulation.next_instant_s()
    {
        simulation.now_s = now_s;
        if simulation.run_instant() || simulation.is_loop() {
            break;
        }
    }
    Ok(simulation.explanations)
}

/// A running simulation.
pub(super) struct Simulation<'a> {
    pub(super) trace: &'a JobTrace,
    pub(super) state: State,
    /// As changed so far.
    pub(super) queues: Vec<ClusterQueue>,
    pub(super) now_s: i64,
    pub(super) cycle: u64,
    pub(super) jobs: Vec<JobState>,
    pub(super) pod_sets: PodSetTemplates,
    /// The job of each workload, by the index of the workload.
    pub(super) job_of: Vec<usize>,
    pub(super) next_arrival: usize,
    pub(super) next_change: usize,
    pub(super) run_ends: Agenda,
    pub(super) grace_ends: Agenda,
    pub(super) lifecycles: JobLifecycles,
    /// By queue, by index of the node: the job that is the sticky preemptor.
    pub(super) sticky: BTreeMap<NodeId, usize>,
    pub(super) queue_history: QueueHistory,
    pub(super) assignments: Assignments,
    pub(super) usage: UsageRecord,
    /// The nodes, if the trace has jobs that are placed.
    pub(super) placement: Option<NodePlacement<'a>>,
    pub(super) waiting: WaitingJobs,
    pub(super) preemptions: u64,
    pub(super) preemptions_max: u64,
    pub(super) makespan_s: i64,
    pub(super) instants: Vec<(i64, u64)>,
    pub(super) events: Vec<Event>,
    pub(super) backfilled: usize,
    pub(super) planned_starts: Vec<PlannedStart>,
    /// The jobs whose first decision is explained.
    pub(super) watched: BTreeSet<usize>,
    pub(super) explanations: BTreeMap<usize, String>,
}

impl<'a> Simulation<'a> {
    fn new(trace: &'a JobTrace) -> Self {
        let mut state = State::new(Options {
            algorithm: core_algorithm(trace.algorithm, trace.fair_sharing.as_ref()),
            compatibility: Compatibility::Kueue,
            // Kueue has no damping.
            damping: Damping::Off,
            ..Options::default()
        });
        for cohort in &trace.cohorts {
            declare_cohort(&mut state, cohort);
        }
        for queue in &trace.cluster_queues {
            declare_queue(&mut state, queue);
        }
        let (jobs, pod_sets) = initial_jobs(trace, &mut state);
        let jobs_count = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
        Self {
            trace,
            state,
            queues: trace.cluster_queues.clone(),
            now_s: 0,
            cycle: 0,
            jobs,
            pod_sets,
            job_of: Vec::new(),
            next_arrival: 0,
            next_change: 0,
            run_ends: Agenda::default(),
            grace_ends: Agenda::default(),
            lifecycles: JobLifecycles::new(trace),
            sticky: BTreeMap::new(),
            queue_history: QueueHistory::default(),
            assignments: Assignments::default(),
            usage: UsageRecord::default(),
            placement: NodePlacement::new(trace),
            waiting: WaitingJobs::default(),
            preemptions: 0,
            preemptions_max: trace.max_preemptions_per_job.saturating_mul(jobs_count),
            makespan_s: 0,
            instants: Vec::new(),
            events: Vec::new(),
            backfilled: 0,
            planned_starts: Vec::new(),
            watched: BTreeSet::new(),
            explanations: BTreeMap::new(),
        }
    }

    /// Starts the jobs that run at the start, in the order of the trace.
    fn start_running_jobs(&mut self) -> Result<(), TraceError> {
        for (index, spec) in self.trace.jobs.iter().enumerate() {
            let Some(ran_s) = spec.ran_seconds else {
                continue;
            };
            let Some(job) = self.jobs.get_mut(index) else {
                continue;
            };
            let InitialRun {
                assignment,
                reservation,
            } = initial_run(&mut self.state, spec, ran_s);
            let pod_sets = self.pod_sets.get(job.pod_sets);
            let workload_spec = workload_spec(spec, pod_sets, spec.created_s());
            job.workload = self.state.add_admitted(workload_spec, &reservation);
            let max_s = spec.maximum_execution_time_seconds;
            let latest_end_s = max_s.map(|it| it.saturating_sub(ran_s));
            set_latest_end(&mut self.state, job.workload, latest_end_s);
            set_execution_time_max(&mut self.state, job.workload, max_s);
            set_job_of(&mut self.job_of, job.workload, index);
            job.phase = Phase::Running(i64::MAX);
            let assignment = Arc::new(assignment);
            let from_s = reservation.reserved_at_s;
            let nodes = match &mut self.placement {
                Some(placement) if placement.places(index) => {
                    let nodes = start_on_nodes(placement, index, &assignment, from_s)?;
                    Some(nodes)
                }
                _ => None,
            };
            job.push_run(Run {
                from_s,
                cycle: 0,
                assignment,
                nodes,
                ready_at_s: None,
                end: RunEnd::Open,
            });
            self.usage
                .hold(job.queue, &reservation.usage, 0, &mut job.held);
            self.begin_run(index);
            self.record(EventKind::Admitted {
                job: index,
                cycle: 0,
            });
        }
        Ok(())
    }

    /// Returns the next time at which something is due, in seconds.
    fn next_instant_s(&self) -> Option<i64> {
        let arrival_s = self.trace.jobs.get(self.next_arrival).map(|it| it.arrival);
        let change_s = self.trace.changes.get(self.next_change).map(|it| it.at);
        // The end of a run that was preempted remains an instant, as in Kueue's recorded timelines.
        let ends_s = [
            self.run_ends.next_s(),
            self.grace_ends.next_s(),
            self.lifecycles.next_s(),
        ];
        [arrival_s, change_s]
            .into_iter()
            .chain(ends_s)
            .flatten()
            .min()
    }

    /// Whether jobs preempt each other or are requeued without end, and nothing else is due.
    fn is_loop(&self) -> bool {
        let has_jobs = self.next_arrival < self.trace.jobs.len();
        let has_changes = self.next_change < self.trace.changes.len();
        let is_endless = self.lifecycles.is_endless() && !has_jobs && !has_changes;
        is_endless || self.preemptions > self.preemptions_max
    }

    /// Runs one instant; returns whether it does not end.
    fn run_instant(&mut self) -> bool {
        self.change_quotas();
        self.finish_jobs();
        self.end_grace_periods();
        self.update_readiness();
        self.arrive();
        self.waiting.retry();
        self.update_placement();
        let cycles_before = self.cycle;
        let is_livelock = self.run_cycles();
        let cycles = self.cycle.saturating_sub(cycles_before);
        if cycles > 0 {
            self.instants.push((self.now_s, cycles));
        }
        is_livelock
    }

    fn change_quotas(&mut self) {
        while let Some(change) = self.trace.changes.get(self.next_change)
            && change.at <= self.now_s
        {
            self.next_change = self.next_change.saturating_add(1);
            let mut queues = self.queues.iter();
            let Some(queue) = queues.position(|it| it.name == change.cluster_queue) else {
                continue;
            };
            if let Some(spec) = self.queues.get_mut(queue)
                && spec.resource_groups != change.resource_groups
            {
                spec.resource_groups.clone_from(&change.resource_groups);
                declare_queue(&mut self.state, spec);
            }
            self.record(EventKind::Changed { queue });
        }
        // Workloads that arrive later must find the queues as they are after the change.
        self.state.apply_changes();
    }

    fn finish_jobs(&mut self) {
        while let Some(index) = self.run_ends.pop_due(self.now_s) {
            let now_s = self.now_s;
            let Some(job) = self.jobs.get_mut(index) else {
                continue;
            };
            if job.phase != Phase::Running(now_s) {
                continue;
            }
            job.phase = Phase::Finished;
            if let Some(run) = job.runs.last_mut() {
                run.end = RunEnd::Finished(now_s);
                self.lifecycles.end_run(run.ready_at_s.is_some());
            }
            self.lifecycles.remove(index);
            self.usage.release(&mut job.held, now_s);
            self.state.remove(job.workload);
            if let Some(placement) = &mut self.placement {
                placement.remove(index);
            }
            self.makespan_s = now_s;
            self.record(EventKind::Finished { job: index });
        }
    }

    fn end_grace_periods(&mut self) {
        while let Some(index) = self.grace_ends.pop_due(self.now_s) {
            self.release(index);
            self.record(EventKind::Released { job: index });
            self.advance_lifecycle(index);
        }
    }

    fn arrive(&mut self) {
        while let Some(spec) = self.trace.jobs.get(self.next_arrival)
            && spec.arrival <= self.now_s
        {
            let index = self.next_arrival;
            self.next_arrival = index.saturating_add(1);
            let Some(job) = self.jobs.get_mut(index) else {
                continue;
            };
            // It may run since the start.
            if job.phase != Phase::NotArrived {
                continue;
            }
            job.phase = Phase::Pending;
            self.lifecycles.record_progress();
            self.enqueue(index);
        }
    }

    /// Puts a job into its queue.
    pub(super) fn enqueue(&mut self, index: usize) {
        let order_time_s = self.order_time_s(index);
        let spec = self.trace.jobs.get(index);
        let (Some(spec), Some(job)) = (spec, self.jobs.get_mut(index)) else {
            return;
        };
        let pod_sets = self.pod_sets.get(job.pod_sets);
        job.workload = self
            .state
            .add_pending(workload_spec(spec, pod_sets, order_time_s));
        let max_s = spec.maximum_execution_time_seconds;
        set_execution_time_max(&mut self.state, job.workload, max_s);
        set_job_of(&mut self.job_of, job.workload, index);
    }

    pub(super) fn record(&mut self, kind: EventKind) {
        match kind {
            EventKind::Admitted { .. }
            | EventKind::Evicted { .. }
            | EventKind::Requeued { .. }
            | EventKind::Released { .. } => {}
            EventKind::Preempted { .. }
            | EventKind::Finished { .. }
            | EventKind::Ready { .. }
            | EventKind::Changed { .. } => self.lifecycles.record_progress(),
        }
        self.events.push(Event {
            at_s: self.now_s,
            kind,
        });
    }

    /// The timeline so far. `stopped` is why the simulation ends before nothing is due any more.
    fn finish(self, stopped: Option<Outcome>) -> Timeline {
        let is_done = |it: &JobState| matches!(it.phase, Phase::Finished | Phase::Deactivated);
        let is_drained = self.jobs.iter().all(is_done);
        let names = self.trace.jobs.iter().map(|job| Arc::clone(&job.name));
        let jobs = names.zip(self.jobs).map(|(name, job)| JobTimeline {
            name,
            runs: job.runs,
        });
        let jobs: Vec<JobTimeline> = jobs.collect();
        let stats = Stats {
            backfilled: self.backfilled,
            pods_ready: pods_ready_stats(self.trace, &jobs, &self.events),
            ..stats(self.trace, &jobs)
        };
        let mut timeline = Timeline {
            outcome: stopped.unwrap_or(if is_drained {
                Outcome::Drained
            } else {
                Outcome::Stuck
            }),
            makespan_s: self.makespan_s,
            cycles: self.cycle,
            instants: self.instants,
            stats,
            jobs,
            queues: self.queues.into_iter().map(|it| it.name).collect(),
            events: self.events,
            planned_starts: self.planned_starts,
            usage: Vec::new(),
        };
        // The instant of the simulation may be later than its last event.
        let until_s = match &timeline.stats.pods_ready {
            Some(_) => timeline.measured_until_s(),
            None => self.now_s,
        };
        timeline.usage = self.usage.totals(&self.state, until_s);
        timeline
    }
}

/// Places the pods of a job that runs at the start.
fn start_on_nodes(
    placement: &mut NodePlacement<'_>,
    job: usize,
    assignment: &Arc<RunAssignment>,
    from_s: i64,
) -> Result<RunNodes, TraceError> {
    match placement.plan(job, assignment) {
        NodePlan::Fits(nodes) => Ok(placement.start(job, assignment, &nodes, from_s)),
        // Nothing is preempted before the start.
        NodePlan::NotPlaced | NodePlan::Waits(..) | NodePlan::DoesNotFit => {
            Err(TraceError::NoRoomOnNodes {
                at: format!("jobs[{job}]"),
            })
        }
    }
}

/// A job as a workload of the core.
pub(super) fn workload_spec(
    job: &Job,
    pod_sets: Vec<PodSet>,
    order_time_s: i64,
) -> WorkloadSpec<'_> {
    WorkloadSpec {
        name: &job.name,
        uid: &job.uid,
        queue: &job.cluster_queue,
        priority: job.priority,
        preemption_priority: None,
        order_time: order_time_s,
        waiting_since_s: job.created_s(),
        pod_sets,
        is_in_scope: true,
        preemption_labels: PreemptionLabels::default(),
    }
}

/// Notes the job of a workload. The core reuses the indices of workloads.
fn set_job_of(job_of: &mut Vec<usize>, workload: WorkloadId, job: usize) {
    let at = workload.index();
    if job_of.len() <= at {
        job_of.resize(at.saturating_add(1), usize::MAX);
    }
    if let Some(slot) = job_of.get_mut(at) {
        *slot = job;
    }
}
