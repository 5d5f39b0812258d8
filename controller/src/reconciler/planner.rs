//! Plans the next write of each object. Planning only reads: the same state and time give the same plan.

mod adoption;
mod covered_job;
mod job;
mod job_kind;
mod orphan;
mod pod_group;
mod pod_node;
mod queue;
mod suspension;
mod victim_pod;
mod workload;

use super::output::ObjectRef;
use super::plan::{Action, Plan};
use super::state::ReconcilerState;

/// Plans the next write of an object. Nothing is written while another write of the object is in flight,
/// before the watch has shown the result of the last write, or during a backoff.
pub(super) fn plan<'a>(state: &'a ReconcilerState, object: &ObjectRef, now_ms: i64) -> Plan<'a> {
    if let Some(tracker) = state.tracker(object) {
        if tracker.conflicted {
            return Plan::at(tracker.backoff.retry_at_ms);
        }
        if tracker.in_flight.is_some() || tracker.version < tracker.min_version {
            return Plan::NOTHING;
        }
        if tracker.backoff.retry_at_ms > now_ms {
            return Plan::at(tracker.backoff.retry_at_ms);
        }
    }
    let view = state.view(now_ms);
    match object {
        ObjectRef::Workload(key) => workload::plan_workload(view, key),
        ObjectRef::Job(key) => job::plan_job(view, key),
        ObjectRef::ClusterQueue(name) => queue::plan_cluster_queue(view, name),
        ObjectRef::Cohort(name) => queue::plan_cohort(view, name),
        ObjectRef::LocalQueue(key) => queue::plan_local_queue(view, key),
        ObjectRef::ResourceFlavor(name) => queue::plan_flavor(view, name),
        ObjectRef::JobKind(name) => job_kind::plan_job_kind(view, name),
        ObjectRef::Event(number) if state.event_recorder.is_pending(*number) => {
            Plan::write(Action::Event)
        }
        ObjectRef::Event(_) => Plan::NOTHING,
        ObjectRef::VictimPod(key) => victim_pod::plan_victim_pod(view, key),
    }
}
