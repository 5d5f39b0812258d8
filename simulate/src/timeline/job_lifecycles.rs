//! The life cycles of jobs whose pods are not ready at once: timeouts, backoff and deactivation, as the core decides on them.

use super::agenda::Agenda;
use super::job_trace::JobTrace;
use lockkeeper_cluster_state::settings::pods_ready_settings;
use lockkeeper_preemption::requeue::{
    EvictedCondition, EvictionReason, Jitter, LifecycleState, LifecycleStep, NotReadyReason,
    PodsReady, RequeueSettings, may_admit, next_step,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The timeouts of a job without any other progress after which it counts as requeued without end, if nothing limits them. With
/// the default backoff, the delay does not grow any more after seven.
const TIMEOUTS_MAX: u64 = 20;

/// The most steps of a job at one time; four are enough for a deactivation.
const STEPS_MAX: u32 = 16;

/// The life cycles of jobs, and what is due.
#[derive(Clone, Debug)]
pub(super) struct JobLifecycles {
    settings: RequeueSettings,
    /// Of the jobs that have or had pods that were not ready at once; empty unless the timeout is enabled.
    states: BTreeMap<usize, JobLifecycle>,
    /// When pods become ready.
    pub(super) ready_times: Agenda,
    /// When timeouts and backoffs end.
    step_times: Agenda,
    /// The running jobs with ready pods.
    ready_count: usize,
    /// The most timeouts of a job since the last progress.
    repeated_timeouts: u64,
    /// The number of them after which jobs count as requeued without end.
    timeouts_max: u64,
    /// Grows with each progress.
    progress: u64,
}

/// The life cycle of a job.
#[derive(Clone, Debug, Default)]
struct JobLifecycle {
    state: LifecycleState,
    /// When its next step is due, in seconds.
    due_s: Option<i64>,
    /// The timeouts since a progress, and the progress.
    timeouts: (u64, u64),
}

/// What a job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifecycleEffect {
    /// Nothing, until something else changes.
    None,
    /// It is evicted.
    Evict(EvictionReason),
    /// Its backoff is over.
    Requeue,
}

/// Where a stopped job goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoppedJob {
    /// Into its queue.
    Queue,
    /// Into backoff until this second.
    Backoff(i64),
    /// It is deactivated.
    Deactivated,
}

impl JobLifecycles {
    /// The life cycles before the simulation.
    pub(super) fn new(trace: &JobTrace) -> Self {
        let settings = pods_ready_settings(&trace.wait_for_pods_ready);
        let has_limit = settings.backoff_limit_count.is_some() || settings.backoff_limit.is_some();
        let timeouts_max = trace.max_preemptions_per_job;
        Self {
            settings,
            timeouts_max: if has_limit {
                timeouts_max
            } else {
                timeouts_max.min(TIMEOUTS_MAX)
            },
            states: BTreeMap::new(),
            ready_times: Agenda::default(),
            step_times: Agenda::default(),
            ready_count: 0,
            repeated_timeouts: 0,
            progress: 0,
        }
    }

    /// The next time at which pods become ready, or a timeout or a backoff ends, in seconds.
    pub(super) fn next_s(&self) -> Option<i64> {
        let times = [self.ready_times.next_s(), self.step_times.next_s()];
        times.into_iter().flatten().min()
    }

    /// Whether only one job is admitted at a time.
    pub(super) const fn admits_one(&self) -> bool {
        self.settings.is_enabled && self.settings.block_admission
    }

    /// Whether no job may be admitted, because the pods of another one are not ready.
    pub(super) fn is_admission_blocked(&self) -> bool {
        let holders = self.states.values().map(|it| &it.state);
        self.admits_one() && !may_admit(&self.settings, holders)
    }

    /// The time of a job in queue order, in seconds, if it differs from its creation.
    pub(super) fn order_time_s(&self, job: usize) -> Option<i64> {
        let state = &self.states.get(&job)?.state;
        Some(state.order_time_ms(&self.settings).div_euclid(1_000))
    }

    /// Quota is reserved for a job, which does not run yet.
    pub(super) fn reserve(&mut self, job: usize, created_s: i64) {
        if !self.settings.is_enabled {
            return;
        }
        let lifecycle = self.states.entry(job).or_default();
        lifecycle.state.created_at_s = created_s;
        lifecycle.state.on_quota_reserved();
    }

    /// A job gives its quota up before it runs.
    pub(super) fn withdraw(&mut self, job: usize) {
        if let Some(lifecycle) = self.states.get_mut(&job) {
            lifecycle.state.has_quota = false;
        }
    }

    /// A job runs from a second, and its pods are ready at `ready_at_s`, or not yet.
    pub(super) fn begin_run(
        &mut self,
        job: usize,
        created_s: i64,
        from_s: i64,
        ready_at_s: Option<i64>,
    ) {
        let is_ready = ready_at_s.is_some();
        if is_ready {
            self.ready_count = self.ready_count.saturating_add(1);
        }
        // Without an earlier eviction, ready pods have no further step.
        if is_ready && !self.states.contains_key(&job) {
            return;
        }
        self.reserve(job, created_s);
        if let Some(lifecycle) = self.states.get_mut(&job) {
            lifecycle.state.admitted_at_s = Some(from_s);
            lifecycle.state.pods_ready = if is_ready {
                PodsReady::Yes
            } else {
                PodsReady::No {
                    reason: NotReadyReason::WaitForStart,
                    since_s: from_s,
                }
            };
        }
    }

    /// The pods of a job are ready.
    pub(super) fn set_ready(&mut self, job: usize) {
        self.ready_count = self.ready_count.saturating_add(1);
        if let Some(lifecycle) = self.states.get_mut(&job) {
            lifecycle.state.pods_ready = PodsReady::Yes;
        }
    }

    /// A run ends, whose pods were ready or not.
    pub(super) fn end_run(&mut self, was_ready: bool) {
        if was_ready {
            self.ready_count = self.ready_count.saturating_sub(1);
        }
    }

    /// A job is preempted.
    pub(super) fn preempt(&mut self, job: usize, at_s: i64) {
        if let Some(lifecycle) = self.states.get_mut(&job) {
            let reason = EvictionReason::Preempted;
            lifecycle.state.evicted = Some(EvictedCondition { reason, at_s });
        }
    }

    /// A job has stopped, and releases its quota.
    pub(super) fn stop(&mut self, job: usize, now_s: i64) -> StoppedJob {
        let Some(lifecycle) = self.states.get_mut(&job) else {
            return StoppedJob::Queue;
        };
        lifecycle.state.on_job_stopped();
        if !lifecycle.state.is_active {
            self.states.remove(&job);
            return StoppedJob::Deactivated;
        }
        let until_s = lifecycle.state.hold_until_s(milliseconds(now_s));
        until_s.map_or(StoppedJob::Queue, StoppedJob::Backoff)
    }

    /// Forgets a job that has finished.
    pub(super) fn remove(&mut self, job: usize) {
        self.states.remove(&job);
    }

    /// Takes the steps of a job up to one that has an effect on the queues. Without one, its next step is planned.
    pub(super) fn advance(&mut self, job: usize, rank: usize, now_s: i64) -> LifecycleEffect {
        let time_ms = milliseconds(now_s);
        let Some(lifecycle) = self.states.get_mut(&job) else {
            return LifecycleEffect::None;
        };
        for _ in 0..STEPS_MAX {
            let step = next_step(&self.settings, &lifecycle.state, time_ms, Jitter::NONE);
            lifecycle.state.apply(&step, time_ms);
            match step {
                LifecycleStep::Idle => return LifecycleEffect::None,
                LifecycleStep::Wait(duration) => {
                    let at_s = now_s.saturating_add(seconds_up(duration));
                    if lifecycle.due_s != Some(at_s) {
                        lifecycle.due_s = Some(at_s);
                        self.step_times.push(at_s, rank, job);
                    }
                    return LifecycleEffect::None;
                }
                LifecycleStep::Evict(eviction) => return LifecycleEffect::Evict(eviction.reason),
                LifecycleStep::Requeue(_) => return LifecycleEffect::Requeue,
                LifecycleStep::SetRequeueState(_)
                | LifecycleStep::SetDeactivationTarget(_)
                | LifecycleStep::Deactivate
                | LifecycleStep::ClearRequeueState => {}
            }
        }
        LifecycleEffect::None
    }

    /// When the pods of a running job that are not ready exceed their timeout, in seconds; `None` if they have none.
    pub(super) fn timeout_s(&self, job: usize, now_s: i64) -> Option<i64> {
        let state = &self.states.get(&job)?.state;
        match next_step(&self.settings, state, milliseconds(now_s), Jitter::NONE) {
            LifecycleStep::Idle => None,
            LifecycleStep::Wait(duration) => Some(now_s.saturating_add(seconds_up(duration))),
            _ => Some(now_s),
        }
    }

    /// Plans a step of a job.
    pub(super) fn plan_step(&mut self, job: usize, rank: usize, at_s: i64) {
        if let Some(lifecycle) = self.states.get_mut(&job) {
            lifecycle.due_s = Some(at_s);
            self.step_times.push(at_s, rank, job);
        }
    }

    /// Removes the next job with a step that is due. Steps that were planned again are left out.
    pub(super) fn pop_step(&mut self, now_s: i64) -> Option<usize> {
        while let Some(job) = self.step_times.pop_due(now_s) {
            if let Some(lifecycle) = self.states.get_mut(&job)
                && lifecycle.due_s == Some(now_s)
            {
                lifecycle.due_s = None;
                return Some(job);
            }
        }
        None
    }

    /// Something has happened that may make further runs possible.
    pub(super) const fn record_progress(&mut self) {
        self.progress = self.progress.saturating_add(1);
        self.repeated_timeouts = 0;
    }

    /// Counts a timeout of a job whose further runs are the same.
    pub(super) fn count_timeout(&mut self, job: usize) {
        if let Some(lifecycle) = self.states.get_mut(&job) {
            let (count, progress) = lifecycle.timeouts;
            let count = if progress == self.progress { count } else { 0 };
            let count = count.saturating_add(1);
            lifecycle.timeouts = (count, self.progress);
            self.repeated_timeouts = self.repeated_timeouts.max(count);
        }
    }

    /// Whether the running jobs are only such that are requeued without end.
    pub(super) const fn repeats_without_end(&self) -> bool {
        self.repeated_timeouts >= self.timeouts_max && self.ready_count == 0
    }
}

const fn milliseconds(seconds: i64) -> i64 {
    seconds.saturating_mul(1_000)
}

/// Whole seconds; a simulation has no shorter times.
fn seconds_up(duration: Duration) -> i64 {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let has_rest = duration.subsec_nanos() > 0;
    seconds.saturating_add(i64::from(has_rest))
}
