//! The groups of pods: which pods belong to each, and the view of a group as one job.

mod roster;

use super::input::Change;
use super::job_stop::termination_end_ms;
use super::model::{JobSource, TrackedWorkload};
use super::observe::observe_job;
use super::output::ObjectRef;
use super::state::{ReconcilerState, View};
use crate::job_adapters::{JobView, POD, POD_GROUP};
use crate::key::{JobKey, ObjectKey};
use roster::{MemberPhase, Roster};
pub(super) use roster::{MemberProblem, MemberRole};
use std::collections::{BTreeMap, BTreeSet};

/// The groups by name.
#[derive(Debug, Default)]
pub(super) struct PodGroups {
    groups: BTreeMap<ObjectKey, Group>,
    /// The groups of the pods.
    group_by_pod: BTreeMap<ObjectKey, ObjectKey>,
    /// The groups that have changed since their view was built, and whether their pods must be planned again.
    changed: BTreeMap<ObjectKey, bool>,
}

/// One group.
#[derive(Debug, Default)]
struct Group {
    pods: BTreeSet<ObjectKey>,
    roles: BTreeMap<ObjectKey, MemberRole>,
    /// The newest resource version of any of its pods.
    version: u64,
    /// Since when no pod of it runs or waits, in milliseconds since 1970.
    ended_since_ms: Option<i64>,
    /// When its view changes without an event, in milliseconds since 1970.
    next_change_ms: Option<i64>,
}

impl PodGroups {
    /// Records the group of a pod; `None` if it has none, or is gone.
    pub(super) fn set_group(&mut self, pod: &ObjectKey, group: Option<&ObjectKey>) {
        if let Some(before) = self.group_by_pod.get(pod)
            && Some(before) != group
        {
            let before = before.clone();
            self.group_by_pod.remove(pod);
            if let Some(entry) = self.groups.get_mut(&before) {
                entry.pods.remove(pod);
                entry.roles.remove(pod);
            }
            self.changed.entry(before).or_default();
        }
        if let Some(group) = group {
            self.group_by_pod.insert(pod.clone(), group.clone());
            let entry = self.groups.entry(group.clone()).or_default();
            entry.pods.insert(pod.clone());
            self.changed.entry(group.clone()).or_default();
        }
    }

    /// The workload of a group has changed, or a write of it has ended: its pods are planned again.
    pub(super) fn set_workload_changed(&mut self, group: &ObjectKey) {
        if self.groups.contains_key(group) {
            self.changed.insert(group.clone(), true);
        }
    }

    /// The role of a pod in its group; `None` until its view is built, or if the pod has ended.
    pub(super) fn role(&self, group: &ObjectKey, pod: &ObjectKey) -> Option<&MemberRole> {
        self.groups.get(group)?.roles.get(pod)
    }

    /// The pods of a group.
    pub(super) fn pods(&self, group: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        let group = self.groups.get(group);
        group.into_iter().flat_map(|it| &it.pods)
    }

    /// When the view of a group changes without an event, in milliseconds since 1970.
    pub(super) fn next_change_ms(&self, group: &ObjectKey) -> Option<i64> {
        self.groups.get(group)?.next_change_ms
    }

    /// The resource versions of pods went back.
    pub(super) fn forget_versions(&mut self) {
        for group in self.groups.values_mut() {
            group.version = 0;
        }
    }
}

/// Builds the views of the groups that have changed.
pub(super) fn refresh_changed(state: &mut ReconcilerState, now_ms: i64) {
    while let Some((group, must_plan_pods)) = state.model.pod_groups.changed.pop_first() {
        refresh(state, &group, must_plan_pods, now_ms);
    }
}

/// Builds the view of a group that has changed, be it with the time.
pub(super) fn refresh_if_due(state: &mut ReconcilerState, group: &ObjectKey, now_ms: i64) {
    let must_plan_pods = state.model.pod_groups.changed.get(group).copied();
    let change_ms = state.model.pod_groups.next_change_ms(group);
    if must_plan_pods.is_some() || change_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        refresh(state, group, must_plan_pods.unwrap_or_default(), now_ms);
    }
}

/// Builds the view of a group. Costs its pods.
fn refresh(state: &mut ReconcilerState, group: &ObjectKey, must_plan_pods: bool, now_ms: i64) {
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
    let is_other = before.is_none_or(|it| *it.view != roster.view);
    let workload = roster.view.workload_name(POD_GROUP);
    let version = roster.view.version;
    if is_other {
        let view = Box::new(roster.view);
        observe_job(state, POD_GROUP, Change::Applied(view), now_ms);
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
    let roles_before = std::mem::replace(&mut entry.roles, roster.roles);
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

/// The roster of a group, and when the next of its terminating pods counts as ended.
fn build_roster(view: View<'_>, group: &ObjectKey) -> (Roster, Option<i64>) {
    let mut members = Vec::new();
    let mut next_end_ms: Option<i64> = None;
    for pod in view.model.pod_groups.pods(group) {
        let key = JobKey {
            kind: POD,
            name: pod.clone(),
        };
        let Some(job) = view.model.jobs.get(&key) else {
            continue;
        };
        let end_ms = termination_end_ms(view, job);
        let is_over = end_ms.is_some_and(|end_ms| end_ms <= view.now_ms);
        if let Some(end_ms) = end_ms.filter(|_| !is_over) {
            next_end_ms = Some(next_end_ms.map_or(end_ms, |it| it.min(end_ms)));
        }
        members.push((&*job.view, phase(&job.view, is_over)));
    }
    let workload = own_workload(view, group);
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

/// The workload of a group, if the group owns it.
pub(super) fn own_workload<'a>(view: View<'a>, group: &ObjectKey) -> Option<&'a TrackedWorkload> {
    let key = JobKey {
        kind: POD_GROUP,
        name: group.clone(),
    };
    let name = roster::group_view(group).workload_name(POD_GROUP);
    let workload = view.model.workloads.get(&name)?;
    let uid = crate::job_adapters::group_uid(group);
    (!workload.is_deleted && workload.is_owned_by(&key, &uid)).then_some(workload)
}

/// Whether all writes of the pods of a group are shown by the watch.
pub(super) fn is_settled(view: View<'_>, group: &ObjectKey) -> bool {
    view.model.pod_groups.pods(group).all(|pod| {
        let key = JobKey {
            kind: POD,
            name: pod.clone(),
        };
        let job = view.model.jobs.get(&key);
        job.is_none_or(|it| {
            it.source != JobSource::Watch || it.tracker.is_settled() && !it.tracker.outcome_unknown
        })
    })
}
