//! The steps of jobs whose pods are not ready at once, as the controller takes them.
//!
//! The time of a run begins when its pods are ready. With `waitForPodsReady`, a job whose pods are not ready in time is evicted,
//! is in backoff, and is requeued, or deactivated beyond the limit.

use super::job_lifecycles::{LifecycleEffect, StoppedJob};
use super::job_state::Phase;
use super::job_trace::PreemptedRun;
use super::ready_time::{ReadyTime, ReadyTimes};
use super::result::{EventKind, NotReadyEviction, RunEnd};
use super::simulation::{Simulation, workload_spec};
use lockkeeper_preemption::requeue::EvictionReason;
use lockkeeper_preemption::requeue_expired_backoffs;

/// Plans what comes first in the last run of a job: its end, ready pods, or their timeout.
pub(super) fn begin_run(simulation: &mut Simulation<'_>, index: usize) {
    let now_s = simulation.now_s;
    let ready = ready_time(simulation, index);
    let (Some(spec), Some(job)) = (
        simulation.trace.jobs.get(index),
        simulation.jobs.get_mut(index),
    ) else {
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
    simulation
        .lifecycles
        .begin_run(index, created_s, from_s, run.ready_at_s);
    update_order(simulation, index);
    if is_ready {
        simulation
            .run_ends
            .push(end_s.unwrap_or(i64::MAX), rank, index);
        advance_lifecycle(simulation, index);
        return;
    }
    // Ends without ready pods are those of the maximum execution time.
    let timeout_s = simulation.lifecycles.timeout_s(index, now_s);
    let is_before = |at_s: i64, other_s: Option<i64>| other_s.is_none_or(|it| at_s <= it);
    match (end_s, ready_s, timeout_s) {
        (Some(at_s), _, _) if is_before(at_s, ready_s) && is_before(at_s, timeout_s) => {
            simulation.run_ends.push(at_s, rank, index);
        }
        (_, Some(at_s), _) if is_before(at_s, timeout_s) => {
            simulation.lifecycles.ready_times.push(at_s, rank, index);
        }
        (_, _, Some(at_s)) => simulation.lifecycles.plan_step(index, rank, at_s),
        (_, _, None) => {}
    }
}

/// Pods become ready, and timeouts and backoffs end.
pub(super) fn update_readiness(simulation: &mut Simulation<'_>) {
    while let Some(index) = simulation.lifecycles.ready_times.pop_due(simulation.now_s) {
        become_ready(simulation, index);
    }
    while let Some(index) = simulation.lifecycles.pop_step(simulation.now_s) {
        advance_lifecycle(simulation, index);
    }
}

fn become_ready(simulation: &mut Simulation<'_>, index: usize) {
    let now_s = simulation.now_s;
    let ReadyTime::After(ready_s) = ready_time(simulation, index) else {
        return;
    };
    let Some(job) = simulation.jobs.get_mut(index) else {
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
    simulation.run_ends.push(end_s, job.rank, index);
    simulation.lifecycles.set_ready(index);
    simulation.record(EventKind::Ready { job: index });
    advance_lifecycle(simulation, index);
}

/// Takes the steps of a job that are due.
pub(super) fn advance_lifecycle(simulation: &mut Simulation<'_>, index: usize) {
    let Some(rank) = simulation.jobs.get(index).map(|it| it.rank) else {
        return;
    };
    loop {
        match simulation.lifecycles.advance(index, rank, simulation.now_s) {
            LifecycleEffect::None => return,
            LifecycleEffect::Evict(reason) => evict_not_ready(simulation, index, reason),
            LifecycleEffect::Requeue => requeue(simulation, index),
        }
    }
}

fn evict_not_ready(simulation: &mut Simulation<'_>, index: usize, reason: EvictionReason) {
    let times = simulation.trace.jobs.get(index);
    let times = times.and_then(|it| simulation.trace.ready_times(it));
    let run = last_run(simulation, index);
    if reason == EvictionReason::PodsReadyTimeout
        && times.is_none_or(|it: &ReadyTimes| it.is_final(run))
    {
        simulation.lifecycles.count_timeout(index);
    } else {
        simulation.lifecycles.record_progress();
    }
    let eviction = NotReadyEviction {
        at_s: simulation.now_s,
        reason,
        released_at_s: None,
    };
    stop(simulation, index, RunEnd::NotReady(eviction));
    simulation.record(EventKind::Evicted { job: index, reason });
    if simulation.trace.grace_period_seconds == 0 {
        release(simulation, index);
    }
}

fn requeue(simulation: &mut Simulation<'_>, index: usize) {
    let now_s = simulation.now_s;
    if let Some(job) = simulation.jobs.get(index) {
        simulation.state.set_backoff(job.workload, now_s);
        requeue_expired_backoffs(&mut simulation.state, now_s);
        simulation.record(EventKind::Requeued { job: index });
    }
}

/// Ends the last run of a job, which keeps its quota during its grace period.
pub(super) fn stop(simulation: &mut Simulation<'_>, index: usize, end: RunEnd) {
    let now_s = simulation.now_s;
    let grace_end_s = now_s.saturating_add(simulation.trace.grace_period_seconds);
    let Some(job) = simulation.jobs.get_mut(index) else {
        return;
    };
    job.phase = Phase::Terminating(grace_end_s);
    if let Some(run) = job.runs.last_mut() {
        run.end = end;
        simulation.lifecycles.end_run(run.ready_at_s.is_some());
        if simulation.trace.mode == PreemptedRun::Resume {
            let ready_at_s = run.ready_at_s.unwrap_or(now_s);
            let ran_s = now_s.saturating_sub(ready_at_s);
            job.remaining_s = job.remaining_s.saturating_sub(ran_s);
        }
    }
    if simulation.trace.grace_period_seconds > 0 {
        simulation.state.mark_evicted(job.workload);
        simulation.grace_ends.push(grace_end_s, job.rank, index);
    }
    if let Some(placement) = &mut simulation.placement {
        placement.evict(index);
    }
}

/// Releases the quota of a stopped job, which is pending again, in backoff or deactivated.
pub(super) fn release(simulation: &mut Simulation<'_>, index: usize) {
    let now_s = simulation.now_s;
    let Some(job) = simulation.jobs.get_mut(index) else {
        return;
    };
    if let Some(run) = job.runs.last_mut()
        && simulation.trace.grace_period_seconds > 0
    {
        match &mut run.end {
            RunEnd::Preempted(eviction) => eviction.released_at_s = Some(now_s),
            RunEnd::NotReady(eviction) => eviction.released_at_s = Some(now_s),
            RunEnd::Open | RunEnd::Finished(_) | RunEnd::Evicted(_) => {}
        }
    }
    job.phase = Phase::Pending;
    simulation.usage.release(&mut job.held, now_s);
    match simulation.lifecycles.stop(index, now_s) {
        StoppedJob::Queue => simulation.state.release(job.workload),
        StoppedJob::Backoff(until_s) => {
            simulation.state.set_backoff(job.workload, until_s);
            simulation.state.release(job.workload);
        }
        StoppedJob::Deactivated => {
            job.phase = Phase::Deactivated;
            simulation.state.remove(job.workload);
        }
    }
    update_order(simulation, index);
    if let Some(placement) = &mut simulation.placement {
        placement.remove(index);
    }
}

/// Gives a job its current time in queue order: it changes with an eviction and with the next admission.
fn update_order(simulation: &mut Simulation<'_>, index: usize) {
    let Some(order_time_s) = simulation.lifecycles.order_time_s(index) else {
        return;
    };
    let (Some(spec), Some(job)) = (simulation.trace.jobs.get(index), simulation.jobs.get(index))
    else {
        return;
    };
    if simulation.state.workload_view(job.workload).order_time() != order_time_s {
        let pod_sets = simulation.pod_sets.get(job.pod_sets);
        let workload_spec = workload_spec(spec, pod_sets, order_time_s);
        simulation
            .state
            .update_workload(job.workload, workload_spec);
    }
}

/// When the pods of the last run of a job are ready.
fn ready_time(simulation: &Simulation<'_>, index: usize) -> ReadyTime {
    let spec = simulation.trace.jobs.get(index);
    spec.map_or(ReadyTime::Never, |it| {
        simulation.trace.ready_time(it, last_run(simulation, index))
    })
}

/// The number of the last run of a job.
fn last_run(simulation: &Simulation<'_>, index: usize) -> usize {
    let runs = simulation.jobs.get(index).map_or(0, |it| it.runs.len());
    runs.saturating_sub(1)
}
