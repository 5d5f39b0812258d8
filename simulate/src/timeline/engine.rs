//! Runs a trace: instants in order, and the cycles of each.

use super::initial_runs::{InitialRun, initial_run};
use super::job_state::{JobState, Phase};
use super::job_trace::JobTrace;
use super::node_placement::{NodePlacement, NodePlan};
use super::pods_ready::{advance_lifecycle, begin_run, release, update_readiness};
use super::result::{
    EventKind, JobTimeline, Outcome, Run, RunAssignment, RunEnd, RunNodes, Stats, Timeline,
};
use super::simulation::{Simulation, set_job_of, workload_spec};
use super::stats::{pods_ready_stats, stats};
use super::trace_error::TraceError;
use super::validate::validate;
use lockkeeper_preemption::{set_execution_time_max, set_latest_end};
use lockkeeper_scenario::declare_queue;
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
    start_running_jobs(&mut simulation)?;
    while let Some(now_s) = next_instant_s(&simulation) {
        simulation.now_s = now_s;
        if run_instant(&mut simulation) {
            return Ok(finish(simulation, Some(Outcome::Livelock)));
        }
        simulation.usage.end_instant();
        if is_loop(&simulation) {
            return Ok(finish(simulation, Some(Outcome::Loop)));
        }
    }
    Ok(finish(simulation, None))
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
    start_running_jobs(&mut simulation)?;
    while !simulation.watched.is_empty()
        && let Some(now_s) = next_instant_s(&simulation)
    {
        simulation.now_s = now_s;
        if run_instant(&mut simulation) || is_loop(&simulation) {
            break;
        }
    }
    Ok(simulation.explanations)
}

/// Starts the jobs that run at the start, in the order of the trace.
fn start_running_jobs(simulation: &mut Simulation<'_>) -> Result<(), TraceError> {
    for (index, spec) in simulation.trace.jobs.iter().enumerate() {
        let Some(ran_s) = spec.ran_seconds else {
            continue;
        };
        let Some(job) = simulation.jobs.get_mut(index) else {
            continue;
        };
        let InitialRun {
            assignment,
            reservation,
        } = initial_run(&mut simulation.state, spec, ran_s);
        let pod_sets = simulation.pod_sets.get(job.pod_sets);
        let workload_spec = workload_spec(spec, pod_sets, spec.created_s());
        job.workload = simulation.state.add_admitted(workload_spec, &reservation);
        let max_s = spec.maximum_execution_time_seconds;
        let latest_end_s = max_s.map(|it| it.saturating_sub(ran_s));
        set_latest_end(&mut simulation.state, job.workload, latest_end_s);
        set_execution_time_max(&mut simulation.state, job.workload, max_s);
        set_job_of(&mut simulation.job_of, job.workload, index);
        job.phase = Phase::Running(i64::MAX);
        let assignment = Arc::new(assignment);
        let from_s = reservation.reserved_at_s;
        let nodes = match &mut simulation.placement {
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
        simulation
            .usage
            .hold(job.queue, &reservation.usage, 0, &mut job.held);
        begin_run(simulation, index);
        simulation.record(EventKind::Admitted {
            job: index,
            cycle: 0,
        });
    }
    Ok(())
}

/// Returns the next time at which something is due, in seconds.
fn next_instant_s(simulation: &Simulation<'_>) -> Option<i64> {
    let arrival_s = simulation
        .trace
        .jobs
        .get(simulation.next_arrival)
        .map(|it| it.arrival);
    let change_s = simulation
        .trace
        .changes
        .get(simulation.next_change)
        .map(|it| it.at);
    // The end of a run that was preempted remains an instant, as in Kueue's recorded timelines.
    let ends_s = [
        simulation.run_ends.next_s(),
        simulation.grace_ends.next_s(),
        simulation.lifecycles.next_s(),
    ];
    [arrival_s, change_s]
        .into_iter()
        .chain(ends_s)
        .flatten()
        .min()
}

/// Whether jobs preempt each other or are requeued without end, and nothing else is due.
fn is_loop(simulation: &Simulation<'_>) -> bool {
    let has_jobs = simulation.next_arrival < simulation.trace.jobs.len();
    let has_changes = simulation.next_change < simulation.trace.changes.len();
    let repeats_without_end =
        simulation.lifecycles.repeats_without_end() && !has_jobs && !has_changes;
    repeats_without_end || simulation.preemptions > simulation.preemptions_max
}

/// Runs one instant; returns whether it does not end.
fn run_instant(simulation: &mut Simulation<'_>) -> bool {
    change_quotas(simulation);
    finish_jobs(simulation);
    end_grace_periods(simulation);
    update_readiness(simulation);
    arrive(simulation);
    simulation.waiting.retry();
    simulation.update_placement();
    let cycles_before = simulation.cycle;
    let is_livelock = simulation.run_cycles();
    let cycles = simulation.cycle.saturating_sub(cycles_before);
    if cycles > 0 {
        simulation.instants.push((simulation.now_s, cycles));
    }
    is_livelock
}

fn change_quotas(simulation: &mut Simulation<'_>) {
    while let Some(change) = simulation.trace.changes.get(simulation.next_change)
        && change.at <= simulation.now_s
    {
        simulation.next_change = simulation.next_change.saturating_add(1);
        let mut queues = simulation.queues.iter();
        let Some(queue) = queues.position(|it| it.name == change.cluster_queue) else {
            continue;
        };
        if let Some(spec) = simulation.queues.get_mut(queue)
            && spec.resource_groups != change.resource_groups
        {
            spec.resource_groups.clone_from(&change.resource_groups);
            declare_queue(&mut simulation.state, spec);
        }
        simulation.record(EventKind::Changed { queue });
    }
    // Workloads that arrive later must find the queues as they are after the change.
    simulation.state.apply_changes();
}

fn finish_jobs(simulation: &mut Simulation<'_>) {
    while let Some(index) = simulation.run_ends.pop_due(simulation.now_s) {
        let now_s = simulation.now_s;
        let Some(job) = simulation.jobs.get_mut(index) else {
            continue;
        };
        if job.phase != Phase::Running(now_s) {
            continue;
        }
        job.phase = Phase::Finished;
        if let Some(run) = job.runs.last_mut() {
            run.end = RunEnd::Finished(now_s);
            simulation.lifecycles.end_run(run.ready_at_s.is_some());
        }
        simulation.lifecycles.remove(index);
        simulation.usage.release(&mut job.held, now_s);
        simulation.state.remove(job.workload);
        if let Some(placement) = &mut simulation.placement {
            placement.remove(index);
        }
        simulation.makespan_s = now_s;
        simulation.record(EventKind::Finished { job: index });
    }
}

fn end_grace_periods(simulation: &mut Simulation<'_>) {
    while let Some(index) = simulation.grace_ends.pop_due(simulation.now_s) {
        release(simulation, index);
        simulation.record(EventKind::Released { job: index });
        advance_lifecycle(simulation, index);
    }
}

fn arrive(simulation: &mut Simulation<'_>) {
    while let Some(spec) = simulation.trace.jobs.get(simulation.next_arrival)
        && spec.arrival <= simulation.now_s
    {
        let index = simulation.next_arrival;
        simulation.next_arrival = index.saturating_add(1);
        let Some(job) = simulation.jobs.get_mut(index) else {
            continue;
        };
        // It may run since the start.
        if job.phase != Phase::NotArrived {
            continue;
        }
        job.phase = Phase::Pending;
        simulation.lifecycles.record_progress();
        simulation.enqueue(index);
    }
}

/// The timeline so far. `stopped` is why the simulation ends before nothing is due any more.
fn finish(simulation: Simulation<'_>, stopped: Option<Outcome>) -> Timeline {
    let is_done = |it: &JobState| matches!(it.phase, Phase::Finished | Phase::Deactivated);
    let is_drained = simulation.jobs.iter().all(is_done);
    let names = simulation
        .trace
        .jobs
        .iter()
        .map(|job| Arc::clone(&job.name));
    let jobs = names.zip(simulation.jobs).map(|(name, job)| JobTimeline {
        name,
        runs: job.runs,
    });
    let jobs: Vec<JobTimeline> = jobs.collect();
    let stats = Stats {
        backfilled: simulation.backfilled,
        pods_ready: pods_ready_stats(simulation.trace, &jobs, &simulation.events),
        ..stats(simulation.trace, &jobs)
    };
    let mut timeline = Timeline {
        outcome: stopped.unwrap_or(if is_drained {
            Outcome::Drained
        } else {
            Outcome::Stuck
        }),
        makespan_s: simulation.makespan_s,
        cycles: simulation.cycle,
        instants: simulation.instants,
        stats,
        jobs,
        queues: simulation.queues.into_iter().map(|it| it.name).collect(),
        events: simulation.events,
        planned_starts: simulation.planned_starts,
        usage: Vec::new(),
    };
    // The instant of the simulation may be later than its last event.
    let until_s = match &timeline.stats.pods_ready {
        Some(_) => timeline.measured_until_s(),
        None => simulation.now_s,
    };
    timeline.usage = simulation.usage.totals(&simulation.state, until_s);
    timeline
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
