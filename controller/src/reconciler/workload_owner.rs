//! The job that a workload belongs to. The uid decides: names and labels can be reused and edited.

use super::adoption::is_adopting;
use super::model::{JobSource, TrackedJob, TrackedWorkload};
use super::state::View;
use crate::job_adapters::labelled_job_uid;
use crate::key::{JobKey, Kind, ObjectKey};

/// Whether its job is gone, or has another workload.
pub(super) fn is_orphan(view: View<'_>, key: &ObjectKey, workload: &TrackedWorkload) -> bool {
    if workload.is_deleted {
        return true;
    }
    let Some(job) = owner(view, workload) else {
        // The controller has created it, so it has lost its owner reference.
        return labelled_job_uid(&workload.object.metadata).is_some()
            || view.model.job_by_workload(key).is_some();
    };
    // Without a complete list of its kind, a missing job proves nothing.
    if !view.model.lists.is_listed(Kind::Job(job.kind)) {
        return false;
    }
    let Some(it) = view.model.jobs.get(job) else {
        return !is_adopting(workload, view.now_ms);
    };
    // A job created again under the same name has another uid, and gets its own workload.
    it.source != JobSource::Watch
        || workload.owner_uid() != Some(it.view.uid.as_str())
        || it.view.workload_name(job.kind) != *key
}

/// The job in the owner reference. A job of a kind that the cluster does not have owns nothing.
pub(super) fn owner<'a>(view: View<'a>, workload: &'a TrackedWorkload) -> Option<&'a JobKey> {
    let job = workload.job.as_ref();
    job.filter(|it| view.model.has_job_kind(it.kind))
}

/// The job that the pods of a workload belong to, if its state is known.
pub(super) fn job_to_stop<'a>(
    view: View<'a>,
    key: &ObjectKey,
    workload: &TrackedWorkload,
) -> Option<(&'a JobKey, &'a TrackedJob)> {
    let by_name = view.model.job_by_workload(key);
    let by_name = by_name.and_then(|it| view.model.jobs.get_key_value(it));
    by_name.or_else(|| {
        let found = view.model.jobs.get_key_value(workload.job.as_ref()?);
        found.filter(|(_, it)| workload.owner_uid() == Some(it.view.uid.as_str()))
    })
}

/// A job to read: its kind, its name if that is known, and its uid.
pub(super) struct JobToRead {
    pub(super) kind: usize,
    pub(super) name: Option<ObjectKey>,
    pub(super) uid: String,
}

/// The job to read before an orphaned workload is deleted; `None` if the workload names no job.
pub(super) fn job_to_read(view: View<'_>, workload: &TrackedWorkload) -> Option<JobToRead> {
    if let Some((key, job)) = job_to_stop(view, &workload.key, workload) {
        return Some(JobToRead {
            kind: key.kind,
            name: Some(key.name.clone()),
            uid: job.view.uid.clone(),
        });
    }
    let kinds = &view.model.job_kinds;
    let owner = kinds.owner(&workload.object);
    // The owner reference may have been edited; the label is that of the creation.
    if let Some(uid) = labelled_job_uid(&workload.object.metadata) {
        let owner = owner.filter(|(_, owner_uid)| *owner_uid == uid);
        let kind = || kinds.kind_from_workload_name(workload.key.name());
        let kind = owner.as_ref().map_or_else(kind, |(key, _)| key.kind);
        let name = owner.map(|(key, _)| key.name);
        return Some(JobToRead {
            kind,
            name: name.or_else(|| kinds.job_name_from_workload(&workload.key, kind, uid)),
            uid: uid.to_owned(),
        });
    }
    owner.map(|(key, uid)| JobToRead {
        kind: key.kind,
        name: Some(key.name),
        uid: uid.to_owned(),
    })
}
