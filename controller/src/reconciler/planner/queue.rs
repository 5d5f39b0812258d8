//! Plans the status of queues and cohorts, and the removal of our finalizer.

use crate::key::ObjectKey;
use crate::reconciler::plan::{Action, Plan};
use crate::reconciler::rate_limit::StatusThrottle;
use crate::reconciler::state::View;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lockkeeper_api::labels;

pub(crate) fn plan_cluster_queue<'a>(view: View<'a>, name: &str) -> Plan<'a> {
    let Some(entry) = view.model.queues.cluster_queues.get(name) else {
        return Plan::NOTHING;
    };
    let state = view.cluster.state();
    let is_unused = || {
        let node = state.queue(name);
        node.is_none_or(|node| state.node_view(node).admitted_count() == 0)
    };
    if is_deleted_with_our_finalizer(&entry.object.metadata) && is_unused() {
        return Plan::write(Action::RemoveFinalizer);
    }
    plan_status(view, &entry.status_throttle)
}

pub(crate) fn plan_cohort<'a>(view: View<'a>, name: &str) -> Plan<'a> {
    let entry = view.model.queues.cohorts.get(name);
    entry.map_or(Plan::NOTHING, |it| plan_status(view, &it.status_throttle))
}

pub(crate) fn plan_local_queue<'a>(view: View<'a>, key: &ObjectKey) -> Plan<'a> {
    let entry = view.model.queues.local_queues.get(key);
    entry.map_or(Plan::NOTHING, |it| plan_status(view, &it.status_throttle))
}

/// A flavor loses our finalizer when no ClusterQueue names it.
pub(crate) fn plan_flavor<'a>(view: View<'a>, name: &str) -> Plan<'a> {
    let entry = view.model.queues.flavors.get(name);
    let is_deleted = entry.is_some_and(|it| is_deleted_with_our_finalizer(&it.object.metadata));
    if is_deleted && view.cluster.objects().queues_using_flavor(name).is_empty() {
        Plan::write(Action::RemoveFinalizer)
    } else {
        Plan::NOTHING
    }
}

/// Plans a status write; the write is dropped if the computed status has not changed.
fn plan_status<'a>(view: View<'a>, throttle: &StatusThrottle) -> Plan<'a> {
    // Computing takes time in proportion to the workloads, so it is throttled like the write.
    let due_ms = throttle.due_ms(view.settings.status_interval_ms);
    match due_ms.filter(|due_ms| *due_ms > view.now_ms) {
        Some(due_ms) => Plan::at(due_ms),
        None => Plan::write(Action::QueueStatus),
    }
}

fn is_deleted_with_our_finalizer(metadata: &ObjectMeta) -> bool {
    let finalizers = metadata.finalizers.iter().flatten();
    let mut finalizers = finalizers.map(String::as_str);
    metadata.deletion_timestamp.is_some() && finalizers.any(|it| it == labels::RESOURCE_IN_USE)
}
