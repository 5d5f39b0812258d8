//! Handles inputs: watch events, results of writes, leadership.

mod job;
mod job_kind;
mod nodes;
mod pod_group;
mod queue;
mod workload;
mod write_result;

pub(super) use job::observe_job;

use super::adoption_holds::AdoptionHolds;
use super::decisions::drop_all_decisions;
use super::input::{Change, Input};
use super::journal::end_journal;
use super::placement::retries::retry_all_waiting;
use super::state::ReconcilerState;
use crate::job_adapters::{KINDS, POD, watched_kind};
use crate::key::{Kind, ObjectKey};
use crate::pod_default_changes::{observe_limit_range, observe_runtime_class};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use std::collections::BTreeMap;

/// Handles one input.
pub(super) fn handle_input(state: &mut ReconcilerState, now_ms: i64, input: Input) {
    match input {
        Input::ClusterQueue(change) => queue::observe_cluster_queue(state, change),
        Input::Cohort(change) => queue::observe_cohort(state, change),
        Input::LocalQueue(change) => queue::observe_local_queue(state, change),
        Input::ResourceFlavor(change) => queue::observe_flavor(state, change),
        Input::PriorityClass(change) => observe_priority_class(state, change),
        Input::Namespace(change) => observe_namespace(state, change),
        Input::LimitRange(change) => {
            state.cycle.is_due = true;
            observe_limit_range(&mut state.cluster, change);
        }
        Input::RuntimeClass(change) => {
            state.cycle.is_due = true;
            observe_runtime_class(&mut state.cluster, change);
        }
        Input::Workload(change) => workload::observe_workload(state, change, now_ms),
        Input::PodGroup(change) => pod_group::observe_pod_group(state, change, now_ms),
        Input::JobKind(change) => job_kind::observe_job_kind(state, change),
        Input::DefinitionChecked {
            job_kind,
            revision,
            check,
        } => job_kind::observe_definition(state, job_kind, revision, check),
        Input::Job(kind, change) => job::observe_job(state, kind, change, now_ms),
        Input::Node(change) => nodes::observe_node(state, change),
        Input::BoundPod(change) => nodes::observe_bound_pod(state, change),
        Input::DisruptionBudget(change) => nodes::observe_budget(state, change),
        Input::Unreadable(kind, key, error) => observe_unreadable(state, kind, &key, &error),
        Input::Listed(kind) => observe_listed(state, kind),
        Input::Restored(kind) => observe_restored(state, kind),
        Input::WriteFinished(id, result) => {
            write_result::observe_write_result(state, id, &result, now_ms);
        }
        Input::KindAvailable(kind) => state.model.lists.add_optional(kind),
        Input::KindForbidden(kind) => {
            if matches!(kind, Kind::Job(index) if index >= KINDS.len()) {
                state.model.lists.set_forbidden(kind);
                state.cycle.is_due = true;
                state.enqueue_all();
            }
        }
        Input::KindMissing(kind) => {
            state.model.lists.remove_optional(kind);
            state.cycle.is_due = true;
            state.enqueue_all();
        }
        Input::Leadership(is_leading) => observe_leadership(state, is_leading),
    }
}

fn observe_priority_class(state: &mut ReconcilerState, change: Change<Box<PriorityClass>>) {
    state.cycle.is_due = true;
    match change {
        Change::Applied(class) => state.cluster.set_priority_class(&class),
        Change::Deleted(key) => state.cluster.remove_priority_class(key.name()),
    }
    state.enqueue_without_priority();
}

fn observe_namespace(state: &mut ReconcilerState, change: Change<Box<Namespace>>) {
    state.cycle.is_due = true;
    match change {
        Change::Applied(namespace) => {
            let key = ObjectKey::from_metadata(&namespace.metadata);
            let labels = namespace.metadata.labels.unwrap_or_default();
            if let Some(placement) = &mut state.placement {
                placement.nodes.set_namespace(key.name(), &labels);
            }
            state.cluster.set_namespace(key.name(), labels);
        }
        Change::Deleted(key) => {
            if let Some(placement) = &mut state.placement {
                placement.nodes.set_namespace(key.name(), &BTreeMap::new());
            }
            state.cluster.remove_namespace(key.name());
        }
    }
}

/// Records an event for an object that cannot be decoded. Its last readable version stays in the state.
fn observe_unreadable(state: &mut ReconcilerState, kind: Kind, key: &ObjectKey, error: &str) {
    if kind == Kind::Workload {
        // The decision is based on an older version: its write would conflict.
        drop(state.model.take_decision(key));
    }
    let mut api_version = None;
    let kind = match kind {
        Kind::Workload => Some("Workload".to_owned()),
        Kind::Job(index) => {
            let kinds = &state.model.job_kinds;
            api_version = kinds.get(index).map(|it| it.resource().api_version());
            Some(kinds.name(index).to_owned())
        }
        Kind::JobKind => Some("JobKind".to_owned()),
        Kind::ClusterQueue => Some("ClusterQueue".to_owned()),
        Kind::Cohort => Some("Cohort".to_owned()),
        Kind::LocalQueue => Some("LocalQueue".to_owned()),
        Kind::ResourceFlavor => Some("ResourceFlavor".to_owned()),
        // Their events would need the right to write events in any namespace.
        Kind::PriorityClass
        | Kind::Namespace
        | Kind::LimitRange
        | Kind::RuntimeClass
        | Kind::PodGroup
        | Kind::Node
        | Kind::BoundPod
        | Kind::DisruptionBudget => None,
    };
    if let Some(kind) = kind {
        state
            .event_recorder
            .record_unreadable(&kind, api_version, key, error);
    }
    state.enqueue_events();
}

fn observe_listed(state: &mut ReconcilerState, kind: Kind) {
    state.cycle.is_due = true;
    state.model.lists.set_listed(kind);
    retry_all_waiting(state);
    if kind == Kind::Workload {
        // A broken watch may have missed a workload that was created and deleted meanwhile.
        for job in state.model.jobs.values_mut() {
            job.workload_created_at = None;
        }
    }
    state.enqueue_all();
}

/// Forgets the versions of a kind. All decisions are dropped, since they are based on objects that do not exist any
/// more.
fn observe_restored(state: &mut ReconcilerState, kind: Kind) {
    drop_all_decisions(state);
    match kind {
        Kind::Workload => {
            state.model.newest_workload_version = 0;
            for workload in state.model.workloads.values_mut() {
                workload.tracker.forget_versions();
            }
            for job in state.model.jobs.values_mut() {
                job.workload_created_at = None;
            }
        }
        Kind::Job(index) => {
            let jobs = state.model.jobs.iter_mut();
            for (_, job) in jobs.filter(|(key, _)| watched_kind(key.kind) == index) {
                job.tracker.forget_versions();
            }
            if index == POD {
                state.model.pod_groups.forget_versions();
            }
        }
        Kind::JobKind => state.model.declared_kinds.forget_versions(),
        _ => state.model.queues.forget_versions(),
    }
    state.cycle.is_due = true;
    state.enqueue_all();
}

fn observe_leadership(state: &mut ReconcilerState, is_leading: bool) {
    if state.is_leading == is_leading {
        return;
    }
    state.is_leading = is_leading;
    if is_leading {
        state.model.lists.set_outdated();
        state.journal.is_due = state.settings.has_decision_log;
    } else {
        end_journal(state);
    }
    // Another leader may have admitted workloads meanwhile.
    state.adoption_holds = AdoptionHolds::default();
    // Unwritten decisions do not apply under another leader: it decides on its own.
    drop_all_decisions(state);
    state.work_queue.clear_ready();
    state.cycle.is_due = true;
    state.enqueue_all();
}
