//! Runs a trace: instants in order, and the cycles of each.

use super::agenda::Agenda;
use super::assignments::Assignments;
use super::initial_runs::{InitialRun, initial_run};
use super::job_state::{JobState, Phase, PodSetTemplates, initial_jobs};
use super::job_trace::{Job, JobTrace, PreemptedRun};
use super::queue_history::QueueHistory;
use super::result::{Event, EventKind, Eviction, JobTimeline, Outcome, Run, RunEnd, Timeline};
use super::stats::stats;
use super::trace_error::TraceError;
use super::usage_record::UsageRecord;
use super::validate::validate;
use lockkeeper_preemption::job::PreemptionLabels;
use lockkeeper_preemption::{
    Assignment, Compatibility, Damping, Decision, Entry, NodeId, Options, PodSet, QueueingStrategy,
    RequeueDestination, RequeueReason, State, Victim, WorkloadId, WorkloadSpec,
    count_repeated_cycle, has_heads,
};
use lockkeeper_scenario::{
    ClusterQueue, core_algorithm, declare_cohort, declare_queue,
};
use std::collections::BTreeMap;
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
    simulation.start_running_jobs();
    while let Some(now_s) = simulation.next_instant_s() {
        simulation.now_s = now_s;
        if simulation.run_instant() {
            return Ok(simulation.finish(Some(Outcome::Livelock)));
        }
        simulation.usage.end_instant();
        if simulation.preemptions > simulation.preemptions_max {
            return Ok(simulation.finish(Some(Outcome::Loop)));
        }
    }
    Ok(simulation.finish(None))
}

/// The effect of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CycleEffect {
    /// It admitted or preempted a job.
    Progress,
    /// It admitted and preempted no job.
    Idle,
    /// Neither that nor did the queues change: every further cycle of the instant would be the same.
    Unchanged,
}

/// A running simulation.
struct Simulation<'a> {
    trace: &'a JobTrace,
    state: State,
    /// As changed so far.
    queues: Vec<ClusterQueue>,
    now_s: i64,
    cycle: u64,
    jobs: Vec<JobState>,
    pod_sets: PodSetTemplates,
    /// The job of each workload, by the index of the workload.
    job_of: Vec<usize>,
    next_arrival: usize,
    next_change: usize,
    run_ends: Agenda,
    grace_ends: Agenda,
    /// By queue, by index of the node: the job that is the sticky preemptor.
    sticky: BTreeMap<NodeId, usize>,
    queue_history: QueueHistory,
    assignments: Assignments,
    usage: UsageRecord,
    preemptions: u64,
    preemptions_max: u64,
    makespan_s: i64,
    instants: Vec<(i64, u64)>,
    events: Vec<Event>,
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
            sticky: BTreeMap::new(),
            queue_history: QueueHistory::default(),
            assignments: Assignments::default(),
            usage: UsageRecord::default(),
            preemptions: 0,
            preemptions_max: trace.max_preemptions_per_job.saturating_mul(jobs_count),
            makespan_s: 0,
            instants: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Starts the jobs that run at the start, in the order of the trace.
    fn start_running_jobs(&mut self) {
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
            let workload_spec = workload_spec(spec, pod_sets);
            job.workload = self.state.add_admitted(workload_spec, &reservation);
            set_job_of(&mut self.job_of, job.workload, index);
            let ends_at_s = spec.run_seconds.saturating_sub(ran_s);
            job.phase = Phase::Running(ends_at_s);
            job.push_run(Run {
                from_s: reservation.reserved_at_s,
                cycle: 0,
                assignment: Arc::new(assignment),
                end: RunEnd::Open,
            });
            self.usage
                .hold(job.queue, &reservation.usage, 0, &mut job.held);
            self.run_ends.push(ends_at_s, job.rank, index);
            self.record(EventKind::Admitted {
                job: index,
                cycle: 0,
            });
        }
    }

    /// Returns the next time at which something is due, in seconds.
    fn next_instant_s(&self) -> Option<i64> {
        let arrival_s = self.trace.jobs.get(self.next_arrival).map(|it| it.arrival);
        let change_s = self.trace.changes.get(self.next_change).map(|it| it.at);
        // The end of a run that was preempted remains an instant, as in Kueue's recorded timelines.
        let ends_s = [self.run_ends.next_s(), self.grace_ends.next_s()];
        [arrival_s, change_s]
            .into_iter()
            .chain(ends_s)
            .flatten()
            .min()
    }

    /// Runs one instant; returns whether it does not end.
    fn run_instant(&mut self) -> bool {
        self.change_quotas();
        self.finish_jobs();
        self.end_grace_periods();
        self.arrive();
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
            }
            self.usage.release(&mut job.held, now_s);
            self.state.remove(job.workload);
            self.makespan_s = now_s;
            self.record(EventKind::Finished { job: index });
        }
    }

    fn end_grace_periods(&mut self) {
        while let Some(index) = self.grace_ends.pop_due(self.now_s) {
            self.release(index);
            self.record(EventKind::Released { job: index });
        }
    }

    /// Releases the quota of a preempted job, which is pending again.
    fn release(&mut self, index: usize) {
        let now_s = self.now_s;
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        if let Some(run) = job.runs.last_mut()
            && let RunEnd::Preempted(eviction) = &mut run.end
            && self.trace.grace_period_seconds > 0
        {
            eviction.released_at_s = Some(now_s);
        }
        job.phase = Phase::Pending;
        self.usage.release(&mut job.held, now_s);
        self.state.release(job.workload);
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
            let pod_sets = self.pod_sets.get(job.pod_sets);
            job.workload = self.state.add_pending(workload_spec(spec, pod_sets));
            set_job_of(&mut self.job_of, job.workload, index);
       }
    }

    /// Runs the cycles of an instant; returns whether the limit on cycles is reached.
    fn run_cycles(&mut self) -> bool {
        self.queue_history.clear();
        let mut cycles = 0;
        while has_heads(&self.state) {
            if cycles == self.trace.max_cycles_per_instant {
                return true;
            }
            cycles = cycles.saturating_add(1);
            let effect = self.run_cycle();
            if effect == CycleEffect::Progress {
                self.queue_history.clear();
            } else if self.queue_history.end_idle_cycle() {
                return false;
            } else if effect == CycleEffect::Unchanged {
                if cycles == self.trace.max_cycles_per_instant {
                    return true;
                }
                // The next cycle would repeat this one and end the instant.
                self.cycle = self.cycle.saturating_add(1);
                count_repeated_cycle(&mut self.state);
                return false;
            }
        }
        false
    }

    fn run_cycle(&mut self) -> CycleEffect {
        self.cycle = self.cycle.saturating_add(1);
        let cycle = self.state.next_cycle(self.now_s, false);
        let mut is_progress = false;
        let mut is_changed = false;
        let mut victims = Vec::new();
        for entry in &cycle.entries {
            let Some(job) = self.job_of.get(entry.workload.index()).copied() else {
                continue;
            };
            match &entry.decision {
                Decision::Admit => {
                    self.admit(job, entry.assignment());
                    is_progress = true;
                }
                Decision::Preempt(selected) => {
                    let before = victims.len();
                    self.preempt(job, selected, &mut victims);
                    is_progress |= victims.len() > before;
                }
                _ => {}
            }
            is_changed |= self.compare_queue(job, entry);
        }
        if self.trace.grace_period_seconds == 0 {
            for victim in victims {
                self.release(victim);
            }
        }
        match (is_progress, is_changed) {
            (true, _) => CycleEffect::Progress,
            (false, true) => CycleEffect::Idle,
            (false, false) => CycleEffect::Unchanged,
        }
    }

    fn admit(&mut self, index: usize, assignment: &Assignment) {
        let now_s = self.now_s;
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        let ends_at_s = now_s.saturating_add(job.remaining_s);
        job.phase = Phase::Running(ends_at_s);
        job.push_run(Run {
            from_s: now_s,
            cycle: self.cycle,
            assignment: self
                .assignments
                .share(&self.state, job.workload, assignment),
            end: RunEnd::Open,
        });
        self.usage
            .hold(job.queue, &assignment.usage, now_s, &mut job.held);
        self.run_ends.push(ends_at_s, job.rank, index);
        if self.sticky.get(&job.queue) == Some(&index) {
            self.sticky.remove(&job.queue);
        }
        self.record(EventKind::Admitted {
            job: index,
            cycle: self.cycle,
        });
    }

    /// Stops the victims of a preemptor that are not terminating already, by name, and adds them to `stopped`.
    fn preempt(&mut self, by: usize, selected: &[Victim], stopped: &mut Vec<usize>) {
        let jobs = selected.iter().filter_map(|victim| {
            let job = *self.job_of.get(victim.workload.index())?;
            let state = self.jobs.get(job)?;
            let is_running = matches!(state.phase, Phase::Running(_));
            is_running.then_some((state.rank, job, victim.reason))
        });
        let mut jobs: Vec<_> = jobs.collect();
        jobs.sort_unstable_by_key(|(rank, ..)| *rank);
        let grace_end_s = self.now_s.saturating_add(self.trace.grace_period_seconds);
        for (rank, index, reason) in jobs {
            let Some(job) = self.jobs.get_mut(index) else {
                continue;
            };
            job.phase = Phase::Terminating(grace_end_s);
            let eviction = Eviction {
                at_s: self.now_s,
                cycle: self.cycle,
                by,
                reason,
                released_at_s: None,
            };
            if let Some(run) = job.runs.last_mut() {
                run.end = RunEnd::Preempted(eviction);
                if self.trace.mode == PreemptedRun::Resume {
                    let ran_s = self.now_s.saturating_sub(run.from_s);
                    job.remaining_s = job.remaining_s.saturating_sub(ran_s);
                }
            }
            if self.trace.grace_period_seconds > 0 {
                self.state.mark_evicted(job.workload);
                self.grace_ends.push(grace_end_s, rank, index);
            }
            stopped.push(index);
            self.preemptions = self.preemptions.saturating_add(1);
            self.record(EventKind::Preempted {
                job: index,
                by,
                cycle: self.cycle,
            });
        }
    }

    /// Records how a cycle has changed the queue of a head. Returns false only if the next cycle treats the head in the
    /// same way as long as the tree does not change.
    fn compare_queue(&mut self, index: usize, entry: &Entry) -> bool {
        let Some(job) = self.jobs.get_mut(index) else {
            return true;
        };
        let tried_flavors = self.state.workload_view(job.workload).tried_flavors();
        // The age of tried flavors decides whether the next cycle uses them.
        let mut is_changed = !job.tried_flavors.is_empty() || !tried_flavors.is_empty();
        if *job.tried_flavors != *tried_flavors {
            let after = tried_flavors.to_vec();
            let before = std::mem::replace(&mut job.tried_flavors, after.clone());
            self.queue_history
                .change_tried_flavors(index, before, after);
        }
        let Some((reason, destination)) = entry.requeued else {
            return true;
        };
        if destination == RequeueDestination::Inadmissible {
            self.queue_history.park();
            is_changed = true;
        }
        // In a StrictFIFO queue the sticky preemptor has no effect.
        if reason == RequeueReason::PendingPreemption
            && self.state.node_view(job.queue).strategy() == QueueingStrategy::BestEffortFifo
        {
            let before = self.sticky.insert(job.queue, index);
            if before != Some(index) {
                self.queue_history
                    .change_sticky(job.queue.index(), before, index);
                is_changed = true;
            }
        }
        is_changed
    }

    fn record(&mut self, kind: EventKind) {
        self.events.push(Event {
            at_s: self.now_s,
            kind,
        });
    }

    /// The timeline so far. `stopped` is why the simulation ends before nothing is due any more.
    fn finish(self, stopped: Option<Outcome>) -> Timeline {
        let is_drained = self.jobs.iter().all(|job| job.phase == Phase::Finished);
        let names = self.trace.jobs.iter().map(|job| Arc::clone(&job.name));
        let jobs = names.zip(self.jobs).map(|(name, job)| JobTimeline {
            name,
            runs: job.runs,
        });
        let jobs: Vec<JobTimeline> = jobs.collect();
        Timeline {
            outcome: stopped.unwrap_or(if is_drained {
                Outcome::Drained
            } else {
                Outcome::Stuck
            }),
            makespan_s: self.makespan_s,
            cycles: self.cycle,
            instants: self.instants,
            stats: stats(self.trace, &jobs),
            jobs,
            queues: self.queues.into_iter().map(|it| it.name).collect(),
            events: self.events,
            usage: self.usage.totals(&self.state, self.now_s),
        }
    }
}

/// A job as a workload of the core.
fn workload_spec(job: &Job, pod_sets: Vec<PodSet>) -> WorkloadSpec<'_> {
    WorkloadSpec {
        name: &job.name,
        uid: &job.uid,
        queue: &job.cluster_queue,
        priority: job.priority,
        preemption_priority: None,
        order_time: job.created_s(),
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
