//! The Workloads of jobs and the jobs of Workloads: names, labels and owner references.

use super::name_digest::fnv1a;
use super::{JobAdapter, KINDS, POD_GROUP};
use crate::key::{JobKey, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockkeeper_api::labels;
use lockkeeper_api::workload::Workload;

/// The start of the names of the workloads of a kind in [`KINDS`].
pub(super) fn kind_prefix(kind: usize) -> String {
    KINDS
        .get(kind)
        .map_or_else(String::new, |it| it.resource().kind.to_lowercase())
}

/// The key of the workload of a job, of a kind with this name in lower case; see `JobView::workload_name`.
pub(super) fn workload_name(prefix: &str, job: &ObjectKey, uid: &str) -> ObjectKey {
    let digest = fnv1a(&[prefix, job.namespace(), job.name(), uid]);
    // With the digest, its separators and the kind, the whole is a valid label value.
    let part_max =
        NAME_PART_MAX.min(LABEL_VALUE_MAX.saturating_sub(prefix.len().saturating_add(18)));
    let short: String = job.name().chars().take(part_max).collect();
    let short = short.trim_end_matches(['-', '.']);
    ObjectKey::new(job.namespace(), &format!("{prefix}-{short}-{digest:016x}"))
}

/// The name of the job with this uid that a workload was created for, if the name of the workload has the whole name
/// of the job; the digest proves that. The name of a workload cannot be changed, unlike its owner reference.
#[must_use]
pub fn job_name_from_workload(workload: &ObjectKey, kind: usize, uid: &str) -> Option<ObjectKey> {
    job_name_of_kind(workload, &kind_prefix(kind), uid)
}

/// Like [`job_name_from_workload`], for a kind with this name in lower case.
pub(super) fn job_name_of_kind(workload: &ObjectKey, prefix: &str, uid: &str) -> Option<ObjectKey> {
    let (_, rest) = workload.name().split_once('-')?;
    let (name, _) = rest.rsplit_once('-')?;
    let job = ObjectKey::new(workload.namespace(), name);
    (workload_name(prefix, &job, uid) == *workload).then_some(job)
}

/// The most characters of the job's name in the name of its workload.
const NAME_PART_MAX: usize = 38;

/// The most characters of a label value.
const LABEL_VALUE_MAX: usize = 63;

/// The job that controls a workload and its uid, if its kind is in [`KINDS`]; or the group in its labels.
#[must_use]
pub fn owner(workload: &Workload) -> Option<(JobKey, &str)> {
    let Some((kind, owner)) = job_controller(&workload.metadata) else {
        return group_of_workload(workload);
    };
    let namespace = workload.metadata.namespace.as_deref().unwrap_or_default();
    let name = ObjectKey::new(namespace, &owner.name);
    Some((JobKey { kind, name }, &owner.uid))
}

/// The group in the labels of its workload, with its uid.
pub(crate) fn group_of_workload(workload: &Workload) -> Option<(JobKey, &str)> {
    let metadata = &workload.metadata;
    let name = metadata.labels.as_ref()?.get(labels::POD_GROUP_NAME)?;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let key = JobKey {
        kind: POD_GROUP,
        name: ObjectKey::new(namespace, name),
    };
    Some((key, labelled_job_uid(metadata)?))
}

/// The uid of the job that the controller created a workload for, from its label.
#[must_use]
pub fn labelled_job_uid(metadata: &ObjectMeta) -> Option<&str> {
    let all = metadata.labels.as_ref()?;
    all.get(labels::JOB_UID).map(String::as_str)
}

/// The kind of the job that a workload with this name was created for; that of `batch/v1` if the name is no
/// such name.
#[must_use]
pub fn kind_from_workload_name(name: &str) -> usize {
    let (prefix, _) = name.split_once('-').unwrap_or((name, ""));
    let is_kind = |kind: &&dyn JobAdapter| kind.resource().kind.to_lowercase() == prefix;
    KINDS.iter().position(is_kind).unwrap_or_default()
}

/// The controlling owner of an object, with its API group.
pub(super) fn controlling_owner(metadata: &ObjectMeta) -> Option<(&str, &OwnerReference)> {
    let owners = metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|it| it.controller == Some(true));
    let owner = owners.next()?;
    // Without the version: an owner of another version of the kind is the same object.
    // The core group is empty, and its versions have no slash.
    let group = owner.api_version.split_once('/').map_or("", |it| it.0);
    Some((group, owner))
}

/// The controlling owner of an object and the index of its kind, if that is a kind of job.
pub(super) fn job_controller(metadata: &ObjectMeta) -> Option<(usize, &OwnerReference)> {
    let (group, owner) = controlling_owner(metadata)?;
    let kind = KINDS.iter().position(|kind| {
        let kind = kind.resource();
        kind.group == group && kind.kind == owner.kind
    })?;
    // A group is no object: nothing can name it as its owner.
    if KINDS.get(kind)?.member_kind().is_some() {
        return None;
    }
    Some((kind, owner))
}
