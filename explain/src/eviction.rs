//! The last eviction of a workload, until it has quota again.

use crate::answer::{Eviction, EvictionCount, Preemption, Requeue};
use crate::identity::controlling_job;
use crate::listing::one_line;
use crate::trial::Trial;
use crate::world::World;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::{NotQueuedReason, PreemptionMessage, WorkloadPhase, kept_out};
use lockkeeper_preemption::WorkloadView;

/// The eviction that the condition `Evicted` of a workload reports; `None` if it is not evicted, or has finished. Costs a pass
/// over the workloads.
pub(crate) fn eviction(world: &World, key: &str, workload: &Workload) -> Option<Eviction> {
    let status = workload.status.as_ref()?;
    let evicted = condition(workload, "Evicted")?;
    let phase = world.cluster.phase(key)?.ok()?;
    if phase == WorkloadPhase::NotQueued(NotQueuedReason::Finished) {
        return None;
    }
    let counted = status.scheduling_stats.as_deref();
    let counts = counted.into_iter().flat_map(|it| &it.evictions);
    let counts = counts.map(|it| EvictionCount {
        reason: one_line(&it.reason),
        underlying_cause: one_line(&it.underlying_cause),
        count: it.count,
    });
    Some(Eviction {
        time: evicted.last_transition_time.0.to_string(),
        reason: one_line(&evicted.reason),
        message: one_line(&evicted.message),
        preemption: preemption(world, key, workload, evicted),
        counts: counts.collect(),
        requeue: requeue(workload, phase, &evicted.reason),
        requeue_count: status.requeue_state.as_ref().map_or(0, |it| it.count),
    })
}

/// A condition that is true.
fn condition<'a>(workload: &'a Workload, of: &str) -> Option<&'a Condition> {
    let mut conditions = workload.status.as_ref()?.conditions.iter();
    conditions.find(|it| it.type_ == of && it.status == "True")
}

/// The preemption that caused an eviction.
fn preemption(
    world: &World,
    key: &str,
    workload: &Workload,
    evicted: &Condition,
) -> Option<Preemption> {
    if evicted.reason != "Preempted" {
        return None;
    }
    let preempted = condition(workload, "Preempted");
    let text = preempted.map_or(&evicted.message, |it| &it.message);
    let message = PreemptionMessage::parse(text);
    let preemptor = preemptor(world, &message);
    let state = world.cluster.state();
    let view = preemptor
        .and_then(|(key, _)| state.workload(key))
        .map(|id| state.workload_view(id));
    let queue = view.and_then(WorkloadView::queue);
    // Messages of earlier versions have no paths.
    let path = |known: Option<&str>, key: Option<&str>| {
        let known = known.map(one_line);
        known.or_else(|| Some(Trial::new(world, key?)?.path))
    };
    Some(Preemption {
        reason: preempted.map(|it| one_line(&it.reason)),
        preemptor: preemptor
            .map(|(key, _)| key.to_owned())
            .or_else(|| message.preemptor.map(one_line)),
        preemptor_job: preemptor.and_then(|(_, it)| controlling_job(it)),
        preemptor_cluster_queue: queue.map(|it| state.node_view(it).name().to_owned()),
        preemptor_priority: view.map(WorkloadView::priority),
        preemptor_uid: message.uid.map(one_line),
        preemptor_path: path(message.preemptor_path, preemptor.map(|(key, _)| key)),
        path: path(message.preemptee_path, Some(key)),
    })
}

/// The workload with the uid in a message, or else the one of the job with the uid.
fn preemptor<'a>(
    world: &'a World,
    message: &PreemptionMessage<'_>,
) -> Option<(&'a str, &'a Workload)> {
    let workloads = || {
        world
            .workloads
            .iter()
            .map(|(key, it)| (key.as_str(), &**it))
    };
    let by_uid = message.uid.and_then(|uid| {
        let mut workloads = workloads();
        workloads.find(|(_, it)| it.metadata.uid.as_deref() == Some(uid))
    });
    by_uid.or_else(|| {
        let uid = message.job_uid?;
        let mut workloads = workloads();
        workloads.find(|(_, it)| {
            let mut owners = it.metadata.owner_references.iter().flatten();
            owners.any(|owner| owner.uid == uid)
        })
    })
}

/// When an evicted workload waits for quota again.
fn requeue(workload: &Workload, phase: WorkloadPhase, reason: &str) -> Requeue {
    match phase {
        WorkloadPhase::Admitted => Requeue::AfterRelease,
        WorkloadPhase::NotQueued(NotQueuedReason::Inactive) => Requeue::AfterActivation,
        WorkloadPhase::NotQueued(NotQueuedReason::LocalQueueStopped) => Requeue::AfterResume,
        WorkloadPhase::OnHold(until_s) if kept_out(workload).is_none() => {
            match Timestamp::from_second(until_s) {
                Ok(time) => Requeue::At {
                    time: time.to_string(),
                },
                Err(_) if reason.ends_with("QueueStopped") => Requeue::AfterResume,
                Err(_) => Requeue::NotQueued,
            }
        }
        WorkloadPhase::OnHold(_) | WorkloadPhase::NotQueued(_) => Requeue::NotQueued,
        WorkloadPhase::Pending => Requeue::Queued,
    }
}
