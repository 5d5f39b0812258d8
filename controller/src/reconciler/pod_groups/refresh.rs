//! Builds the view of a group as one job.

use super::index::placed_roles;
use super::roster::{MemberPhase, Roster, group_view};
use crate::job_adapters::{JobView, POD, POD_GROUP};
use crate::key::{JobKey, ObjectKey};
use crate::reconciler::input::Change;
use crate::reconciler::job_stop::termination_end_ms;
use crate::reconciler::model::{JobSource, TrackedWorkload};
use crate::reconciler::observe::observe_job;
use crate::reconciler::output::ObjectRef;
use crate::reconciler::placement::units::sync_unit;
use crate::reconciler::state::{ReconcilerState, View};

/// Builds the views of the groups that have changed.
pub(in crate::reconciler) fn refresh_changed(state: &mut ReconcilerState, now_ms: i64) {
    while let Some((group, must_plan_pods)) = state.model.pod_groups.changed.pop_first() {
        refresh(state, &group, must_plan_pods, now_ms);
    }
}

/// Builds the view of a group that has changed, be it with the time.
pub(in crate::reconciler) fn refresh_if_due(
    state: &mut ReconcilerState,
    group: &ObjectKey,
    now_ms: i64,
) {
    let must_plan_pods = state.model.pod_groups.changed.get(group).copied();
    let change_ms = state.model.pod_groups.next_change_ms(group);
    if must_plan_pods.is_some() || change_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        refresh(state, group, must_plan_pods.unwrap_or_default(), now_ms);
    }
}

/// Builds the view of a group. Costs its pods.
fn refresh(state: &mut ReconcilerState, group: &ObjectKey, must_plan_pods: bool, now_ms: i64) {
    forget_ended_pods(state, group);
    state.model.pod_groups.changed.remove(group);
    let Some(entry) = state.model.pod_groups.groups.get(group) else {
        return;
    };
    if entry.pods.is_empty() {
        state.model.pod_groups.groups.remove(group);
        observe_job(state, POD_GROUP, Change::Deleted(group.clone()), now_ms);
        return;
    }
    let view = state.view(now_ms);
    let (mut roster, next_end_ms) = build_roster(view, group);
    let ended_since_ms = roster
        .has_ended
        .then(|| entry.ended_since_ms.unwrap_or(now_ms));
    let response_ms = view.settings.job_response_ms;
    let result_at_ms = ended_since_ms.map(|since_ms| since_ms.saturating_add(response_ms));
    // Its owner may create other pods for those that have failed.
    if result_at_ms.is_some_and(|at_ms| now_ms < at_ms) && !roster.has_succeeded {
        roster.view.result = None;
    }
    roster.view.version = roster.view.version.max(entry.version);
    let key = JobKey {
        kind: POD_GROUP,
        name: group.clone(),
    };
    let before = state.model.jobs.get(&key);
    let was_incomplete = before.map(|it| it.view.is_incomplete);
    let is_incomplete = roster.view.is_incomplete;
    let version = roster.view.version;
    // Its pods are not planned again for each event of one of them.
    roster.view.version = before.map_or(version, |it| it.view.version);
    let is_other = before.is_none_or(|it| *it.view != roster.view);
    roster.view.version = version;
    let workload = roster.view.workload_name(POD_GROUP);
    if is_other {
        let view = Box::new(roster.view);
        observe_job(state, POD_GROUP, Change::Applied(view), now_ms);
        if let Some(placement) = &mut state.placement {
            // A pod that replaces another is part of the unit.
            sync_unit(placement, &state.cluster, &state.model, &workload);
        }
    }
    let Some(entry) = state.model.pod_groups.groups.get_mut(group) else {
        return;
    };
    entry.version = version;
    entry.ended_since_ms = ended_since_ms;
    let result_at_ms = result_at_ms.filter(|at_ms| now_ms < *at_ms);
    let next_change_ms = next_end_ms.into_iter().chain(result_at_ms).min();
    if std::mem::replace(&mut entry.next_change_ms, next_change_ms) != next_change_ms {
        // Its plan sets the timer.
        state.work_queue.enqueue(ObjectRef::Job(key));
    }
    let roles_before = std::mem::replace(&mut entry.roles, placed_roles(roster.roles));
    let is_planned = |pod: &&ObjectKey| {
        must_plan_pods || is_other || entry.roles.get(*pod) != roles_before.get(*pod)
    };
    for pod in entry.pods.iter().filter(is_planned) {
        state.work_queue.enqueue(ObjectRef::Job(JobKey {
            kind: POD,
            name: pod.clone(),
        }));
    }
    if was_incomplete != Some(is_incomplete) {
        // Its workload leaves the queue, or comes back.
        state.sync_workload(&workload);
        state.cycle.is_due = true;
    }
}

/// Forgets the pods that were read and have ended, once the group holds no quota: no watch shows their deletion.
fn forget_ended_pods(state: &mut ReconcilerState, group: &ObjectKey) {
    let key = JobKey {
        kind: POD_GROUP,
        name: group.clone(),
    };
    let workload = state.model.workload_of(&key, &group_view(group));
    if workload.is_some_and(TrackedWorkload::holds_quota) {
        return;
    }
    let pods = state.model.pod_groups.pods(group);
    let ended = pods.filter(|pod| {
        let pod = state.model.pod(pod);
        pod.is_some_and(|it| matches!(it.source, JobSource::Read(_)) && it.view.result.is_some())
    });
    for name in ended.cloned().collect::<Vec<_>>() {
        let pod = JobKey { kind: POD, name };
        drop(state.model.remove_job(&pod));
        state.work_queue.enqueue(ObjectRef::Job(pod));
    }
}

/// The roster of a group, and when the next of its terminating pods counts as ended.
fn build_roster(view: View<'_>, group: &ObjectKey) -> (Roster, Option<i64>) {
    let mut members = Vec::new();
    let mut next_end_ms: Option<i64> = None;
    for pod in view.model.pod_groups.pods(group) {
        let Some(job) = view.model.pod(pod) else {
            continue;
        };
        let end_ms = termination_end_ms(view, job);
        let is_over = end_ms.is_some_and(|end_ms| end_ms <= view.now_ms);
        if let Some(end_ms) = end_ms.filter(|_| !is_over) {
            next_end_ms = Some(next_end_ms.map_or(end_ms, |it| it.min(end_ms)));
        }
        members.push((&*job.view, phase(&job.view, is_over)));
    }
    let key = JobKey {
        kind: POD_GROUP,
        name: group.clone(),
    };
    let workload = view.model.workload_of(&key, &group_view(group));
    (Roster::new(group, members, workload), next_end_ms)
}

fn phase(pod: &JobView, is_over: bool) -> MemberPhase {
    match &pod.result {
        Some(result) if result.is_success => MemberPhase::Succeeded,
        // It was deleted while it waited, or will be gone soon.
        Some(_) if pod.is_deleted => MemberPhase::Gone,
        Some(_) => MemberPhase::Failed,
        None if is_over => MemberPhase::Failed,
        None if pod.is_suspended => MemberPhase::Waiting,
        None => MemberPhase::Running,
    }
}
