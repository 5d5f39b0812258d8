//! Validates traces.

use super::job_state::queues_without_quota;
use super::job_trace::JobTrace;
use super::ready_time::{ReadyTime, ReadyTimes};
use super::trace_error::{TIME_MAX_S, TraceError};
use lockkeeper_scenario::{check_pod_sets, check_queues, check_resource_groups};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Checks a trace: names, references, times, order, counts and amounts.
pub(super) fn validate(trace: &JobTrace) -> Result<(), TraceError> {
    check_queues(&trace.cohorts, &trace.cluster_queues)?;
    check_time(trace.grace_period_seconds, 0, || {
        "gracePeriodSeconds".to_owned()
    })?;
    check_ready_times(trace.ready_seconds.as_ref(), || "readySeconds".to_owned())?;
    let pods_ready = trace.wait_for_pods_ready.check();
    pods_ready.map_err(|conflict| TraceError::PodsReady {
        key: conflict.keys().0,
        conflict,
    })?;
    if trace.max_cycles_per_instant == 0 {
        return Err(TraceError::NoCycles);
    }
    if trace.max_preemptions_per_job == 0 {
        return Err(TraceError::NoPreemptions);
    }
    let queues = trace.cluster_queues.iter();
    let queues: BTreeSet<&str> = queues.map(|it| it.name.as_str()).collect();
    if let Some(placement) = &trace.placement {
        placement.check(&queues)?;
    }
    check_jobs(trace, &queues)?;
    check_changes(trace, &queues)
}

fn check_jobs(trace: &JobTrace, queues: &BTreeSet<&str>) -> Result<(), TraceError> {
    let mut names = BTreeSet::new();
    // By address: shared pod sets are checked once.
    let mut checked = BTreeSet::new();
    let mut previous = 0;
    let without_quota = queues_without_quota(trace);
    for (index, job) in trace.jobs.iter().enumerate() {
        let at = |field: &str| format!("jobs[{index}].{field}");
        if !names.insert(&*job.name) {
            return Err(TraceError::DuplicateJob {
                at: at("name"),
                name: job.name.to_string(),
            });
        }
        check_queue(&job.cluster_queue, queues, || at("clusterQueue"))?;
        check_time(job.arrival, 0, || at("arrival"))?;
        check_order(job.arrival, &mut previous, || at("arrival"))?;
        check_time(job.run_seconds, 1, || at("runSeconds"))?;
        if let Some(limit_s) = job.maximum_execution_time_seconds {
            check_time(limit_s, 1, || at("maximumExecutionTimeSeconds"))?;
        }
        check_ready_times(job.ready_seconds.as_ref(), || at("readySeconds"))?;
        check_start(trace, index, !without_quota.contains(&*job.cluster_queue))?;
        if job.pod_sets.is_empty() {
            return Err(TraceError::NoPodSet { at: at("podSets") });
        }
        if checked.insert(Arc::as_ptr(&job.pod_sets)) {
            check_pod_sets(&job.pod_sets, &format!("jobs[{index}]"))?;
        }
    }
    Ok(())
}

/// Checks the fields of a job that exists before the start.
fn check_start(trace: &JobTrace, index: usize, needs_flavors: bool) -> Result<(), TraceError> {
    let Some(job) = trace.jobs.get(index) else {
        return Ok(());
    };
    let at = |field: &str| format!("jobs[{index}].{field}");
    check_time(job.waited_seconds, 0, || at("waitedSeconds"))?;
    let Some(ran_s) = job.ran_seconds else {
        return Ok(());
    };
    check_time(ran_s, 0, || at("ranSeconds"))?;
    let length_s = job.length_s(trace.ready_time(job, 0), job.run_s());
    if let Some(run_s) = length_s.filter(|it| ran_s >= *it) {
        return Err(TraceError::EndedBeforeStart {
            at: at("ranSeconds"),
            ran_s,
            run_s,
        });
    }
    if job.arrival != 0 {
        return Err(TraceError::RunsBeforeArrival {
            at: at("arrival"),
            arrival_s: job.arrival,
        });
    }
    if !needs_flavors {
        return Ok(());
    }
    for (pod_set_at, pod_set) in job.pod_sets.iter().enumerate() {
        let mut requests = pod_set.requests.keys();
        if let Some(resource) = requests.find(|it| !pod_set.flavors.contains_key(*it)) {
            return Err(TraceError::NoFlavor {
                at: at(&format!("podSets[{pod_set_at}].flavors")),
                resource: resource.clone(),
            });
        }
    }
    Ok(())
}

fn check_changes(trace: &JobTrace, queues: &BTreeSet<&str>) -> Result<(), TraceError> {
    let mut previous = 0;
    for (index, change) in trace.changes.iter().enumerate() {
        let at = |field: &str| format!("changes[{index}].{field}");
        check_queue(&change.cluster_queue, queues, || at("clusterQueue"))?;
        check_time(change.at, 0, || at("at"))?;
        check_order(change.at, &mut previous, || at("at"))?;
        check_resource_groups(&change.resource_groups, &at("resourceGroups"))?;
    }
    Ok(())
}

fn check_queue(
    name: &str,
    queues: &BTreeSet<&str>,
    at: impl Fn() -> String,
) -> Result<(), TraceError> {
    if queues.contains(name) {
        return Ok(());
    }
    Err(TraceError::UnknownQueue {
        at: at(),
        name: name.to_owned(),
    })
}

fn check_ready_times(
    times: Option<&ReadyTimes>,
    at: impl Fn() -> String,
) -> Result<(), TraceError> {
    let times = times.map_or(&[][..], ReadyTimes::times);
    for (index, time) in times.iter().enumerate() {
        let ReadyTime::After(seconds) = *time else {
            continue;
        };
        check_time(seconds, 0, || match times {
            [_] => at(),
            _ => format!("{}[{index}]", at()),
        })?;
    }
    Ok(())
}

fn check_time(value: i64, least: i64, at: impl Fn() -> String) -> Result<(), TraceError> {
    if (least..=TIME_MAX_S).contains(&value) {
        return Ok(());
    }
    Err(TraceError::Time {
        at: at(),
        value,
        least,
    })
}

fn check_order(value: i64, previous: &mut i64, at: impl Fn() -> String) -> Result<(), TraceError> {
    if value < *previous {
        return Err(TraceError::Unsorted {
            at: at(),
            value,
            previous: *previous,
        });
    }
    *previous = value;
    Ok(())
}
