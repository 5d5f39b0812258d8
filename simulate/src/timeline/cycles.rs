//! The cycles of an instant.

use super::job_state::Phase;
use super::node_placement::NodePlan;
use super::pods_ready::{begin_run, release, stop};
use super::result::{
    EventKind, Eviction, EvictionReason, PlannedStart, Run, RunAssignment, RunEnd, RunNodes,
};
use super::simulation::Simulation;
use lockkeeper_preemption::{
    Assignment, Cycle, Decision, Entry, QueueingStrategy, RequeueDestination, RequeueReason,
    Victim, count_repeated_cycle, has_heads,
};
use lockkeeper_scenario::explanation::write_entry;
use std::sync::Arc;

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

impl Simulation<'_> {
    /// Runs the cycles of an instant; returns whether the limit on cycles is reached.
    pub(super) fn run_cycles(&mut self) -> bool {
        self.queue_history.clear();
        let mut cycles = 0;
        while has_heads(&self.state) && !self.lifecycles.is_admission_blocked() {
            if cycles == self.trace.max_cycles_per_instant {
                return true;
            }
            cycles = cycles.saturating_add(1);
            let mut effect = self.run_cycle();
            if self.update_placement() {
                effect = CycleEffect::Progress;
            }
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
        let is_traced = self.has_watched_pending();
        let cycle = self.state.next_cycle(self.now_s, is_traced);
        let mut is_progress = false;
        let mut is_changed = false;
        let mut has_admitted = false;
        let mut victims = Vec::new();
        self.record_planned_starts(&cycle);
        for entry in &cycle.entries {
            let Some(job) = self.job_of.get(entry.workload.index()).copied() else {
                continue;
            };
            if is_traced && self.watched.remove(&job) {
                self.explain(job, entry);
            }
            match &entry.decision {
                // The next job is admitted when the pods of the first one are ready.
                Decision::Admit if has_admitted && self.lifecycles.admits_one() => {
                    self.state.release(entry.workload);
                    is_changed = true;
                    continue;
                }
                Decision::Admit => {
                    let Some(nodes) = self.find_nodes(job, entry.assignment()) else {
                        is_changed = true;
                        continue;
                    };
                    self.admit(job, entry.assignment(), nodes, &mut victims);
                    is_progress = true;
                    has_admitted = true;
                }
                Decision::Preempt(selected) => {
                    let selected = self.running_victims(selected);
                    if !self.fits_after(job, entry.assignment(), &selected) {
                        is_changed = true;
                        continue;
                    }
                    is_progress |= self.preempt(job, selected, &mut victims);
                }
                _ => {}
            }
            is_changed |= self.compare_queue(job, entry);
        }
        if self.trace.grace_period_seconds == 0 {
            for victim in victims {
                release(self, victim);
            }
        }
        match (is_progress, is_changed) {
            (true, _) => CycleEffect::Progress,
            (false, true) => CycleEffect::Idle,
            (false, false) => CycleEffect::Unchanged,
        }
    }

    /// Records the starts that the cycle has planned for the first time, and counts the jobs that it backfilled.
    fn record_planned_starts(&mut self, cycle: &Cycle) {
        // The entries of heads come first.
        let backfilled = cycle.entries.len().saturating_sub(cycle.heads.len());
        self.backfilled = self.backfilled.saturating_add(backfilled);
        for bound in &cycle.start_bounds {
            let job = self.job_of.get(bound.workload.index()).copied();
            let state = job.and_then(|job| self.jobs.get_mut(job));
            if let (Some(job), Some(state)) = (job, state)
                && !std::mem::replace(&mut state.is_start_planned, true)
            {
                self.planned_starts.push(PlannedStart {
                    job,
                    planned_at_s: self.now_s,
                    starts_by_s: bound.starts_by_s,
                    is_guaranteed: bound.is_guaranteed,
                });
            }
        }
    }

    /// Reserves the quota of a job, and starts it, or preempts the jobs on its nodes, which `stopped` gets.
    fn admit(
        &mut self,
        index: usize,
        assignment: &Assignment,
        nodes: NodePlan,
        stopped: &mut Vec<usize>,
    ) {
        let now_s = self.now_s;
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        let shared = self
            .assignments
            .share(&self.state, job.workload, assignment);
        self.usage
            .hold(job.queue, &assignment.usage, now_s, &mut job.held);
        if self.sticky.get(&job.queue) == Some(&index) {
            self.sticky.remove(&job.queue);
        }
        self.start_or_nominate(index, &shared, nodes, stopped);
    }

    /// Starts a job with quota.
    pub(super) fn start(
        &mut self,
        index: usize,
        assignment: Arc<RunAssignment>,
        nodes: Option<RunNodes>,
    ) {
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        job.push_run(Run {
            from_s: self.now_s,
            cycle: self.cycle,
            assignment,
            nodes,
            ready_at_s: None,
            end: RunEnd::Open,
        });
        begin_run(self, index);
        self.record(EventKind::Admitted {
            job: index,
            cycle: self.cycle,
        });
    }

    /// The victims that are not terminating already, by name.
    fn running_victims(&self, selected: &[Victim]) -> Vec<(usize, EvictionReason)> {
        let jobs = selected.iter().filter_map(|victim| {
            let job = *self.job_of.get(victim.workload.index())?;
            let state = self.jobs.get(job)?;
            let has_quota = matches!(state.phase, Phase::Running(_) | Phase::Nominated);
            has_quota.then_some((state.rank, job, victim.reason))
        });
        let mut jobs: Vec<_> = jobs.collect();
        jobs.sort_unstable_by_key(|(rank, ..)| *rank);
        let jobs = jobs.into_iter();
        jobs.map(|(_, job, reason)| (job, reason.into())).collect()
    }

    /// Stops the victims of a preemptor, and adds them to `stopped`. One that waits for nodes has no pods: it releases its
    /// quota at once. Returns whether there are any.
    pub(super) fn preempt(
        &mut self,
        by: usize,
        selected: Vec<(usize, EvictionReason)>,
        stopped: &mut Vec<usize>,
    ) -> bool {
        let has_any = !selected.is_empty();
        for (index, reason) in selected {
            let phase = self.jobs.get(index).map(|it| it.phase);
            if phase == Some(Phase::Nominated) {
                self.withdraw(index);
                continue;
            }
            let eviction = Eviction {
                at_s: self.now_s,
                cycle: self.cycle,
                by,
                reason,
                released_at_s: None,
            };
            stop(self, index, RunEnd::Preempted(eviction));
            self.lifecycles.preempt(index, self.now_s);
            stopped.push(index);
            self.preemptions = self.preemptions.saturating_add(1);
            self.record(EventKind::Preempted {
                job: index,
                by,
                cycle: self.cycle,
            });
        }
        has_any
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

    /// Whether a job whose decision is explained may be decided on.
    fn has_watched_pending(&self) -> bool {
        let mut watched = self.watched.iter();
        watched.any(|job| {
            let job = self.jobs.get(*job);
            job.is_some_and(|it| it.phase == Phase::Pending)
        })
    }

    fn explain(&mut self, job: usize, entry: &Entry) {
        let mut text = String::new();
        // A string takes all text.
        if write_entry(&mut text, &self.state, entry).is_ok() {
            self.explanations.insert(job, text);
        }
    }
}
