//! Plans the status of queues and cohorts, and our finalizer.

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
    let is_in_use = || {
        let node = state.queue(name);
        node.is_some_and(|node| state.node_view(node).admitted_count() > 0)
    };
    match plan_finalizer(view, &entry.object.metadata, is_in_use) {
        Some(action) => Plan::write(action),
        None => plan_status(view, &entry.status_throttle),
    }
}

pub(crate) fn plan_cohort<'a>(view: View<'a>, name: &str) -> Plan<'a> {
    let entry = view.model.queues.cohorts.get(name);
    entry.map_or(Plan::NOTHING, |it| plan_status(view, &it.status_throttle))
}

pub(crate) fn plan_local_queue<'a>(view: View<'a>, key: &ObjectKey) -> Plan<'a> {
    let entry = view.model.queues.local_queues.get(key);
    entry.map_or(Plan::NOTHING, |it| plan_status(view, &it.status_throttle))
}

/// A flavor is in use while a ClusterQueue names it.
pub(crate) fn plan_flavor<'a>(view: View<'a>, name: &str) -> Plan<'a> {
    let Some(entry) = view.model.queues.flavors.get(name) else {
        return Plan::NOTHING;
    };
    let is_in_use = || !view.cluster.objects().queues_using_flavor(name).is_empty();
    let action = plan_finalizer(view, &entry.object.metadata, is_in_use);
    action.map_or(Plan::NOTHING, Plan::write)
}

/// Our finalizer is removed from a deleted object that is no longer in use, and added to an object in use that lost it:
/// to one that a user replaced, or that was created while no webhook ran.
fn plan_finalizer<'a>(
    view: View<'a>,
    metadata: &ObjectMeta,
    is_in_use: impl Fn() -> bool,
) -> Option<Action<'a>> {
    let mut finalizers = metadata.finalizers.iter().flatten();
    let has_ours = finalizers.any(|it| it == labels::RESOURCE_IN_USE);
    match (metadata.deletion_timestamp.is_some(), has_ours) {
        (true, true) if !is_in_use() => Some(Action::RemoveFinalizer),
        (false, false) if view.settings.rules.adds_finalizers && is_in_use() => {
            Some(Action::AddFinalizer)
        }
        _ => None,
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
