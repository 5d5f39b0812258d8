//! Watch events of jobs, and jobs that were read.

use crate::job_adapters::{
    GroupClaim, JobAdapter, JobView, POD, TemplateSource, group_of_workload,
};
use crate::key::{JobKey, ObjectKey};
use crate::reconciler::input::Change;
use crate::reconciler::model::{GoneJob, JobSource, TrackedJob};
use crate::reconciler::output::{JobRead, ObjectRef};
use crate::reconciler::placement::nominations::note_directed_pod;
use crate::reconciler::pod_groups::pod_group_policy::apply_pod_group;
use crate::reconciler::state::ReconcilerState;
use crate::reconciler::workload_owner::job_to_stop;

pub(crate) fn observe_job(
    state: &mut ReconcilerState,
    kind: usize,
    change: Change<Box<JobView>>,
    now_ms: i64,
) {
    let name = match change {
        Change::Applied(view) if state.model.is_covered_by_parent(kind, &view) => {
            return observe_covered(state, kind, view, now_ms);
        }
        Change::Applied(view) => {
            let name = view.name.clone();
            upsert_job(state, kind, view, JobSource::Watch, now_ms);
            name
        }
        Change::Deleted(name) => return leave_watch(state, kind, name),
    };
    remove_covered_jobs(state, &JobKey { kind, name });
}

fn upsert_job(
    state: &mut ReconcilerState,
    kind: usize,
    mut view: Box<JobView>,
    source: JobSource,
    now_ms: i64,
) {
    for pod_set in &mut view.pod_sets {
        state.model.templates.intern_template(&mut pod_set.template);
    }
    // A malformed annotation counts as absent: without the placement of each pod set, the job would start without its flavors.
    let pod_sets = view.pod_sets.len();
    view.saved_placement = view.saved_placement.filter(|it| it.len() == pod_sets);
    if kind == POD {
        let known = state.model.pod(&view.name).map(|it| &*it.view);
        apply_pod_group(&state.model.pod_group_policies, known, &mut view);
    }
    let template = take_template(&mut view);
    let key = JobKey {
        kind,
        name: view.name.clone(),
    };
    let known = state.model.jobs.get(&key);
    // A job that was created again under the same name has another uid: earlier writes do not count.
    // So does one that has joined another group: it has another workload.
    let group = |it: &JobView| it.group.as_ref().map(|it| it.group.clone());
    let is_first =
        known.is_none_or(|it| it.view.uid != view.uid || group(&it.view) != group(&view));
    if is_first {
        if known.is_some() {
            leave_watch(state, kind, key.name.clone());
        }
        let job = TrackedJob::new(view.clone());
        state.model.insert_job(key.clone(), job);
    }
    let Some(job) = state.model.jobs.get_mut(&key) else {
        return;
    };
    job.source = source;
    job.tracker.observe(view.version);
    // A restarted watch may deliver an older version.
    if job.tracker.version == view.version {
        let claims = [&job.view, &view].map(|it| it.parent.as_ref().map(|(key, _)| key.clone()));
        job.set_view(view, is_first, now_ms);
        state.model.set_claim(&key, claims);
        match template.filter(|_| state.model.needs_template_text(&key)) {
            Some(text) => state.model.template_texts.insert(&key, text),
            None => state.model.template_texts.remove(&key),
        }
    }
    let Some(job) = state.model.jobs.get(&key) else {
        return;
    };
    if let Some(claim) = &job.view.group {
        state
            .model
            .pod_groups
            .set_group(&key.name, Some(&claim.group));
    }
    let is_foreign = job.view.foreign_manager.is_some();
    let workload = job.view.workload_name(kind);
    if is_first && is_foreign {
        state.sync_workload(&workload);
    }
    note_directed_pod(state, &workload);
    state.work_queue.enqueue(ObjectRef::Workload(workload));
    state.work_queue.enqueue(ObjectRef::Job(key));
}

/// Replaces the view of a pod whose group has changed, though the pod has not.
pub(crate) fn replace_pod_view(
    state: &mut ReconcilerState,
    key: &JobKey,
    view: Box<JobView>,
    now_ms: i64,
) {
    if let Some(source) = state.model.jobs.get(key).map(|it| it.source) {
        upsert_job(state, key.kind, view, source, now_ms);
    }
}

/// Takes the text of the templates out of a view: only the texts of some jobs are kept.
fn take_template(view: &mut JobView) -> Option<Box<str>> {
    match std::mem::take(&mut view.template_source) {
        TemplateSource::Text(text) => Some(text),
        TemplateSource::NotKept => None,
        TemplateSource::TooLarge => {
            view.template_source = TemplateSource::TooLarge;
            None
        }
    }
}

/// Stores the templates of a job that was read for them; false if the watch has not shown this version or the
/// deletion yet. It will show them with the templates.
pub(crate) fn observe_template_read(state: &mut ReconcilerState, read: &JobRead) -> bool {
    let JobRead::Exists(kind, view) = read else {
        return false;
    };
    let key = JobKey {
        kind: *kind,
        name: view.name.clone(),
    };
    let known = state.model.jobs.get(&key);
    let is_known = |it: &TrackedJob| it.view.uid == view.uid && it.view.version == view.version;
    if !known.is_some_and(is_known) {
        return false;
    }
    if let Some(text) = view.template_source.text() {
        state.model.template_texts.insert(&key, text.into());
    }
    true
}

/// A job that has no workload of its own: it starts and stops with the job that created it.
fn observe_covered(state: &mut ReconcilerState, kind: usize, view: Box<JobView>, now_ms: i64) {
    if is_kept_covered(state, kind, &view) {
        upsert_job(state, kind, view, JobSource::Covered, now_ms);
    } else {
        leave_watch(state, kind, view.name);
    }
}

/// Whether a covered job stays tracked. One of a built-in kind of parent while it runs: its parent may be suspended, or end. One of a
/// declared kind while the controller has suspended it as a job of its own, or its workload holds quota; the controllers of built-in
/// kinds resume their jobs themselves.
fn is_kept_covered(state: &ReconcilerState, kind: usize, job: &JobView) -> bool {
    let Some((key, _)) = &job.parent else {
        return false;
    };
    let Some(parent) = state.model.jobs.get(key) else {
        return false;
    };
    if parent.view.declared.is_none() {
        return !job.is_suspended && job.result.is_none();
    }
    let workload = state.model.workloads.get(&job.workload_name(kind));
    job.is_suspended || workload.is_some_and(|it| it.holds_quota())
}

/// A job is not in the watch any more. While its workload holds quota, it is read before that is released.
fn leave_watch(state: &mut ReconcilerState, kind: usize, name: ObjectKey) {
    let key = JobKey { kind, name };
    let Some(job) = state.model.jobs.get_mut(&key) else {
        return;
    };
    let workload = job.view.workload_name(kind);
    let holder = state.model.workloads.get(&workload);
    // A pod of a group that waits, or has ended, is not read: it runs only after a write of the controller.
    let is_settled = job.tracker.is_settled() && !job.tracker.outcome_unknown;
    let is_idle_member = job.view.group.is_some() && job.view.is_suspended && is_settled;
    if holder.is_some_and(|it| it.holds_quota()) && !is_idle_member {
        job.source = JobSource::Unread;
        if job.view.group.is_some() {
            // It is read next: the watch will not show the result of its last write.
            job.tracker.min_version = job.tracker.version;
            state.work_queue.enqueue(ObjectRef::Job(key));
        }
    } else {
        drop(state.model.remove_job(&key));
        state.work_queue.enqueue(ObjectRef::Job(key));
    }
    note_directed_pod(state, &workload);
    state.work_queue.enqueue(ObjectRef::Workload(workload));
}

/// The parent of a tracked job names it.
fn cover_job(state: &mut ReconcilerState, key: JobKey) {
    let Some(job) = state.model.jobs.get_mut(&key) else {
        return;
    };
    job.source = JobSource::Covered;
    let workload = job.view.workload_name(key.kind);
    state.work_queue.enqueue(ObjectRef::Workload(workload));
    state.work_queue.enqueue(ObjectRef::Job(key));
}

/// The jobs that this job has created may have arrived before it.
fn remove_covered_jobs(state: &mut ReconcilerState, parent: &JobKey) {
    let creates_jobs = state
        .model
        .job_kinds
        .get(parent.kind)
        .is_some_and(JobAdapter::creates_jobs);
    let Some(uid) = state.model.jobs.get(parent).map(|it| it.view.uid.clone()) else {
        return;
    };
    if !creates_jobs {
        return;
    }
    let covered = state.model.claimed_children(parent).filter(|(child, it)| {
        let claim = it.view.parent.as_ref();
        claim.is_some_and(|(_, of)| *of == uid)
            && state.model.is_covered_by_parent(child.kind, &it.view)
    });
    let covered = covered.map(|(child, it)| {
        let is_kept = is_kept_covered(state, child.kind, &it.view);
        (child.clone(), is_kept)
    });
    for (child, is_kept) in covered.collect::<Vec<_>>() {
        if is_kept {
            cover_job(state, child);
        } else {
            leave_watch(state, child.kind, child.name);
        }
    }
}

/// Records the state of a pod of a group that has left the watch. It stays in its group until it is gone.
pub(crate) fn observe_pod_read(
    state: &mut ReconcilerState,
    key: &JobKey,
    read: &JobRead,
    now_ms: i64,
) {
    let Some(known) = state.model.jobs.get(key) else {
        return;
    };
    // The label may be back: the watch shows later versions.
    if known.source == JobSource::Watch {
        return;
    }
    match read {
        JobRead::Exists(kind, view) => {
            let mut view = view.clone();
            view.group.clone_from(&known.view.group);
            upsert_job(state, *kind, view, JobSource::Read(now_ms), now_ms);
        }
        JobRead::Gone { .. } => {
            drop(state.model.remove_job(key));
            state.work_queue.enqueue(ObjectRef::Job(key.clone()));
        }
        JobRead::StartedPods(_) => {}
    }
}

/// Removes a job that is neither watched nor exists, and records whether it has left pods.
fn remove_gone_job(state: &mut ReconcilerState, workload: &ObjectKey, has_pods: bool, now_ms: i64) {
    let view = state.view(now_ms);
    let tracked = view.model.workloads.get(workload);
    let gone = tracked.and_then(|it| job_to_stop(view, workload, it));
    let gone = gone.filter(|(_, it)| it.source != JobSource::Watch);
    if let Some(key) = gone.map(|(key, _)| key.clone()) {
        drop(state.model.remove_job(&key));
        state.work_queue.enqueue(ObjectRef::Job(key));
    }
    if let Some(tracked) = state.model.workloads.get_mut(workload) {
        tracked.gone_job = Some(GoneJob {
            read_at_ms: now_ms,
            has_pods,
        });
    }
}

/// A pod of the group of a workload that the watch does not show, because it has lost its queue label. It takes part in that
/// group until it is gone, whatever its other labels say: any user can write them.
fn observe_started_pod(
    state: &mut ReconcilerState,
    workload: &ObjectKey,
    pod: &JobView,
    now_ms: i64,
) {
    if state.model.pod(&pod.name).is_some() {
        return;
    }
    let tracked = state.model.workloads.get(workload);
    let Some((group, _)) = tracked.and_then(|it| group_of_workload(&it.object)) else {
        return;
    };
    let mut pod = Box::new(pod.clone());
    if pod.group.as_ref().is_none_or(|it| it.group != group.name) {
        pod.group = Some(Box::new(GroupClaim::of_unlabelled_pod(group.name)));
    }
    let source = JobSource::Read(now_ms);
    upsert_job(state, POD, pod, source, now_ms);
}

/// Records the state of a job that was read before its workload is deleted, or releases its quota.
pub(crate) fn observe_job_read(
    state: &mut ReconcilerState,
    workload: &ObjectKey,
    read: &JobRead,
    now_ms: i64,
) {
    match read {
        JobRead::Exists(kind, view) => {
            let key = JobKey {
                kind: *kind,
                name: view.name.clone(),
            };
            let known = state.model.jobs.get(&key);
            // The label may be back: the watch shows later versions.
            if known.is_none_or(|it| it.source != JobSource::Watch) {
                upsert_job(state, *kind, view.clone(), JobSource::Read(now_ms), now_ms);
            }
        }
        JobRead::Gone { has_pods } => remove_gone_job(state, workload, *has_pods, now_ms),
        JobRead::StartedPods(pods) => {
            remove_gone_job(state, workload, !pods.is_empty(), now_ms);
            for pod in pods {
                observe_started_pod(state, workload, pod, now_ms);
            }
        }
    }
    state
        .work_queue
        .enqueue(ObjectRef::Workload(workload.clone()));
}
