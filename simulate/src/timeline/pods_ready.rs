//! The steps of jobs whose pods are not ready at once, as the controller takes them.
//!
//! The time of a run begins when its pods are ready. With `waitForPodsReady`, a job whose pods are not ready in time is evicted,
//! is in backoff, and is requeued, or deactivated beyond the limit.

use super::engine::{Simulation, workload_spec};
use super::job_lifecycles::{LifecycleEffect, StoppedJob};
use super::job_state::Phase;
use super::job_trace::PreemptedRun;
use super::ready_time::{ReadyTime, ReadyTimes};
use super::result::{EventKind, NotReadyEviction, RunEnd};
use lockkeeper_preemption::requeue::EvictionReason;
use lockkeeper_preemption::requeue_expired_backoffs;

impl Simulation<'_> {
    /// Plans what comes first in the last run of a job: its end, ready pods, or their timeout.
    pub(super) fn begin_run(&mut self, index: usize) {
        let now_s = self.now_s;
        let ready = self.ready_time(index);
        let (Some(spec), Some(job)) = (self.trace.jobs.get(index), self.jobs.get_mut(index)) else {
            return;
        };
        let Some(run) = job.runs.last_mut() else {
            return;
        };
        let (rank, from_s) = (job.rank, run.from_s);
        let ready_s = match ready {
            ReadyTime::After(ready_s) => Some(from_s.saturating_add(ready_s)),
            ReadyTime::Never => None,
        };
        let length_s = spec.length_s(ready, job.remaining_s);
        let end_s = length_s.map(|it| from_s.saturating_add(it));
        job.phase = Phase::Running(end_s.unwrap_or(i64::MAX));
        run.ready_at_s = ready_s.filter(|it| *it <= now_s);
        let is_ready = run.ready_at_s.is_some();
        let created_s = spec.created_s();
        self.lifecycles
            .begin_run(index, created_s, from_s, run.ready_at_s);
        self.update_order(index);
        if is_ready {
            self.run_ends.push(end_s.unwrap_or(i64::MAX), rank, index);
            self.advance_lifecycle(index);
            return;
        }
        // Ends without ready pods are those of the maximum execution time.
        let timeout_s = self.lifecycles.timeout_s(index, now_s);
        let is_before = |at_s: i64, other_s: Option<i64>| other_s.is_none_or(|it| at_s <= it);
        match (end_s, ready_s, timeout_s) {
            (Some(at_s), _, _) if is_before(at_s, ready_s) && is_before(at_s, timeout_s) => {
                self.run_ends.push(at_s, rank, index);
            }
            (_, Some(at_s), _) if is_before(at_s, timeout_s) => {
                self.lifecycles.ready_times.push(at_s, rank, index);
            }
            (_, _, Some(at_s)) => self.lifecycles.plan_step(index, rank, at_s),
            (_, _, None) => {}
        }
    }

    /// Pods become ready, and timeouts and backoffs end.
    pub(super) fn update_readiness(&mut self) {
        while let Some(index) = self.lifecycles.ready_times.pop_due(self.now_s) {
            self.become_ready(index);
        }
        while let Some(index) = self.lifecycles.pop_step(self.now_s) {
            self.advance_lifecycle(index);
        }
    }

    fn become_ready(&mut self, index: usize) {
        let now_s = self.now_s;
        let ReadyTime::After(ready_s) = self.ready_time(index) else {
            return;
        };
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        // The run for which this was planned may have ended.
        let (Phase::Running(end_s), Some(run)) = (job.phase, job.runs.last_mut()) else {
            return;
        };
        if run.ready_at_s.is_some() || run.from_s.saturating_add(ready_s) != now_s {
            return;
        }
        run.ready_at_s = Some(now_s);
        self.run_ends.push(end_s, job.rank, index);
        self.lifecycles.set_ready(index);
        self.record(EventKind::Ready { job: index });
        self.advance_lifecycle(index);
    }

    /// Takes the steps of a job that are due.
    pub(super) fn advance_lifecycle(&mut self, index: usize) {
        let Some(rank) = self.jobs.get(index).map(|it| it.rank) else {
            return;
        };
        loop {
            match self.lifecycles.advance(index, rank, self.now_s) {
                LifecycleEffect::None => return,
                LifecycleEffect::Evict(reason) => self.evict_not_ready(index, reason),
                LifecycleEffect::Requeue => self.requeue(index),
            }
        }
    }

    fn evict_not_ready(&mut self, index: usize, reason: EvictionReason) {
        let times = self.trace.jobs.get(index);
        let times = times.and_then(|it| self.trace.ready_times(it));
        let run = self.last_run(index);
        if reason == EvictionReason::PodsReadyTimeout
            && times.is_none_or(|it: &ReadyTimes| it.is_final(run))
        {
            self.lifecycles.count_timeout(index);
        } else {
            self.lifecycles.record_progress();
        }
        let eviction = NotReadyEviction {
            at_s: self.now_s,
            reason,
            released_at_s: None,
        };
        self.stop(index, RunEnd::NotReady(eviction));
        self.record(EventKind::Evicted { job: index, reason });
        if self.trace.grace_period_seconds == 0 {
            self.release(index);
        }
    }

    fn requeue(&mut self, index: usize) {
        let now_s = self.now_s;
        if let Some(job) = self.jobs.get(index) {
            self.state.set_backoff(job.workload, now_s);
            requeue_expired_backoffs(&mut self.state, now_s);
            self.record(EventKind::Requeued { job: index });
        }
    }

    /// Ends the last run of a job, which keeps its quota during its grace period.
    pub(super) fn stop(&mut self, index: usize, end: RunEnd) {
        let now_s = self.now_s;
        let grace_end_s = now_s.saturating_add(self.trace.grace_period_seconds);
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        job.phase = Phase::Terminating(grace_end_s);
        if let Some(run) = job.runs.last_mut() {
            run.end = end;
            self.lifecycles.end_run(run.ready_at_s.is_some());
            if self.trace.mode == PreemptedRun::Resume {
                let ready_at_s = run.ready_at_s.unwrap_or(now_s);
                let ran_s = now_s.saturating_sub(ready_at_s);
                job.remaining_s = job.remaining_s.saturating_sub(ran_s);
            }
        }
        if self.trace.grace_period_seconds > 0 {
            self.state.mark_evicted(job.workload);
            self.grace_ends.push(grace_end_s, job.rank, index);
        }
        if let Some(placement) = &mut self.placement {
            placement.evict(index);
        }
    }

    /// Releases the quota of a stopped job, which is pending again, in backoff or deactivated.
    pub(super) fn release(&mut self, index: usize) {
        let now_s = self.now_s;
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        if let Some(run) = job.runs.last_mut()
            && self.trace.grace_period_seconds > 0
        {
            match &mut run.end {
                RunEnd::Preempted(eviction) => eviction.released_at_s = Some(now_s),
                RunEnd::NotReady(eviction) => eviction.released_at_s = Some(now_s),
                RunEnd::Open | RunEnd::Finished(_) | RunEnd::Evicted(_) => {}
            }
        }
        job.phase = Phase::Pending;
        self.usage.release(&mut job.held, now_s);
        match self.lifecycles.stop(index, now_s) {
            StoppedJob::Queue => self.state.release(job.workload),
            StoppedJob::Backoff(until_s) => {
                self.state.set_backoff(job.workload, until_s);
                self.state.release(job.workload);
            }
            StoppedJob::Deactivated => {
                job.phase = Phase::Deactivated;
                self.state.remove(job.workload);
            }
        }
        self.update_order(index);
        if let Some(placement) = &mut self.placement {
            placement.remove(index);
        }
    }

    /// The time of a job in queue order, in seconds.
    pub(super) fn order_time_s(&self, index: usize) -> i64 {
        let created_s = || self.trace.jobs.get(index).map_or(0, |it| it.created_s());
        let order_time_s = self.lifecycles.order_time_s(index);
        order_time_s.unwrap_or_else(created_s)
    }

    /// Gives a job its current time in queue order: it changes with an eviction and with the next admission.
    fn update_order(&mut self, index: usize) {
        let Some(order_time_s) = self.lifecycles.order_time_s(index) else {
            return;
        };
        let (Some(spec), Some(job)) = (self.trace.jobs.get(index), self.jobs.get(index)) else {
            return;
        };
        if self.state.workload_view(job.workload).order_time() != order_time_s {
            let pod_sets = self.pod_sets.get(job.pod_sets);
            let workload_spec = workload_spec(spec, pod_sets, order_time_s);
            self.state.update_workload(job.workload, workload_spec);
        }
    }

    /// When the pods of the last run of a job are ready.
    fn ready_time(&self, index: usize) -> ReadyTime {
        let spec = self.trace.jobs.get(index);
        spec.map_or(ReadyTime::Never, |it| {
            self.trace.ready_time(it, self.last_run(index))
        })
    }

    /// The number of the last run of a job.
    fn last_run(&self, index: usize) -> usize {
        let runs = self.jobs.get(index).map_or(0, |it| it.runs.len());
        runs.saturating_sub(1)
    }
}
