//! Which jobs can be adopted: running ones that no queue, controller or earlier Workload manages.

use super::objects::ListedJob;
use super::selection::{JobName, Selection, adoptable_kinds};
use lockkeeper_api::workload::Admission;
use lockkeeper_api::{Workload, labels};
use lockkeeper_controller::job_adapters::{JobKinds, JobView};
use lockkeeper_controller::{AdoptionState, JobKey, adoption_state};
use serde_json::Value;
use std::collections::BTreeMap;

/// How a job relates to the queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Candidacy {
    /// It has no quota yet.
    NeedsQuota,
    /// An earlier run has reserved its quota, and was interrupted.
    HasQuota,
    /// It was adopted before.
    Adopted,
    /// Another state of the job or of its Workload has to end first, with the reason.
    Blocked(String),
    /// It is no running job without a queue, with the reason.
    Skipped(String),
}

/// Decodes a job of the kind with this index. The error is the problem.
pub(crate) fn parse(kinds: &JobKinds, kind: usize, object: &Value) -> Result<JobView, String> {
    kinds
        .parse(kind, object.clone())
        .map_err(|it| it.to_string())
}

/// The key of a job of the kind with this index.
pub(crate) fn job_key(kind: usize, job: &JobView) -> JobKey {
    JobKey {
        kind,
        name: job.name.clone(),
    }
}

/// Classifies a job. `workloads` are those of the cluster by namespace and name.
pub(crate) fn candidacy(
    listed: &ListedJob,
    job: &JobView,
    selection: &Selection,
    workloads: &BTreeMap<String, Workload>,
) -> Candidacy {
    let object = &listed.object;
    if let Some(reason) = skip_reason(&selection.job_kinds, object, job) {
        return Candidacy::Skipped(reason);
    }
    let name = job.workload_name(listed.kind);
    let workload = workloads.get(name.key());
    let own = workload.filter(|it| is_owned_by(&selection.job_kinds, it, listed.kind, job));
    if let Some(label) = queue_label(object) {
        return labelled(object, job, label, selection, own);
    }
    match (workload, own) {
        (None, _) => Candidacy::NeedsQuota,
        (Some(_), None) => Candidacy::Blocked(format!(
            "another object owns Workload {}; delete the Workload",
            name.name()
        )),
        (Some(_), Some(own)) => interrupted(job, own, selection),
    }
}

/// Why a job is not considered, whatever its queue is.
fn skip_reason(kinds: &JobKinds, object: &Value, job: &JobView) -> Option<String> {
    if job.result.is_some() {
        return Some("has finished".to_owned());
    }
    if job.is_deleted {
        return Some("is being deleted".to_owned());
    }
    if let Some(manager) = &job.foreign_manager {
        // A declaration names the field of its kind.
        let field = if job.declared.is_some() {
            ""
        } else {
            " (spec.managedBy)"
        };
        return Some(format!(
            "{manager} manages it{field}, and its pods could not be stopped"
        ));
    }
    if let Some((parent, _)) = &job.parent
        && adoptable_kinds(kinds).any(|it| it == parent.kind)
    {
        let parent = JobName::new(kinds, parent.kind, parent.name.name());
        return Some(format!(
            "{} {} controls it; adopt {parent} instead",
            parent.kind_name, parent.name
        ));
    }
    if let Some(owner) = controller_of(object) {
        return Some(format!(
            "{owner} controls it; set the label {} in the template of its owner",
            labels::QUEUE_NAME
        ));
    }
    job.is_suspended
        .then(|| format!("is suspended; set its label {} instead", labels::QUEUE_NAME))
}

/// Kind and name of the controlling owner of an object.
fn controller_of(object: &Value) -> Option<String> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let mut owners = owners
        .iter()
        .filter(|it| it.get("controller").and_then(Value::as_bool) == Some(true));
    let owner = owners.next()?;
    let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    Some(format!("{} {}", text("kind"), text("name")))
}

/// The queue label; an empty one counts.
fn queue_label(object: &Value) -> Option<&str> {
    let all = object.pointer("/metadata/labels")?;
    all.get(labels::QUEUE_NAME)?.as_str()
}

fn is_owned_by(kinds: &JobKinds, workload: &Workload, kind: usize, job: &JobView) -> bool {
    let key = job_key(kind, job);
    kinds
        .owner(workload)
        .is_some_and(|(owner, uid)| owner == key && uid == job.uid)
}

fn labelled(
    object: &Value,
    job: &JobView,
    label: &str,
    selection: &Selection,
    own: Option<&Workload>,
) -> Candidacy {
    if label != selection.queue {
        return Candidacy::Skipped(format!("is in LocalQueue {label:?} already"));
    }
    let all = object.pointer("/metadata/annotations");
    let adopted = all.and_then(|it| it.get(labels::ADOPTION));
    if adopted.and_then(Value::as_str) != Some(&job.uid) {
        return Candidacy::Skipped("is in this LocalQueue already".to_owned());
    }
    match own {
        Some(own) if admission(own).is_some() && !is_evicted(own) => {
            if adoption_state(own) == AdoptionState::None {
                Candidacy::Adopted
            } else {
                // The controller has still to see the label.
                Candidacy::HasQuota
            }
        }
        _ => Candidacy::Skipped("is in this LocalQueue already, without quota".to_owned()),
    }
}

/// A job without the label that has a Workload.
fn interrupted(job: &JobView, own: &Workload, selection: &Selection) -> Candidacy {
    let name = own.metadata.name.as_deref().unwrap_or_default();
    if adoption_state(own) == AdoptionState::None || is_evicted(own) {
        return Candidacy::Blocked(format!(
            "the controller is deleting its former Workload {name}; run the command again"
        ));
    }
    let queue = own.spec.queue_name.as_deref().unwrap_or_default();
    if queue != selection.queue {
        return Candidacy::Blocked(format!(
            "an earlier run has begun to adopt it into LocalQueue {queue}; set --queue {queue}, or delete Workload {name}"
        ));
    }
    let is_changed = match admission(own) {
        Some(admission) => exceeds(job, admission),
        None => !has_counts(job, own),
    };
    if is_changed {
        return Candidacy::Blocked(format!(
            "its number of pods has changed since an earlier run; delete Workload {name}, and run the command again"
        ));
    }
    if admission(own).is_some() {
        Candidacy::HasQuota
    } else {
        Candidacy::NeedsQuota
    }
}

/// Whether the pod sets of a workload have the counts of its job.
fn has_counts(job: &JobView, workload: &Workload) -> bool {
    let of_workload = workload.spec.pod_sets.iter();
    let of_workload = of_workload.map(|it| it.count.unwrap_or(1));
    of_workload.eq(job.pod_sets.iter().map(|it| it.count))
}

/// Whether a job has more pods than are admitted.
pub(crate) fn exceeds(job: &JobView, admission: &Admission) -> bool {
    job.pod_sets.iter().any(|pod_set| {
        let mut all = admission.pod_set_assignments.iter();
        let admitted = all
            .find(|it| it.name == pod_set.name)
            .map_or(0, |it| it.count);
        pod_set.count > admitted
    })
}

/// The admission of a workload, unless its quota was released.
pub(crate) fn admission(workload: &Workload) -> Option<&Admission> {
    let admission = workload.status.as_ref()?.admission.as_ref();
    admission.filter(|_| !has_status(workload, "QuotaReserved", "False"))
}

/// Whether a workload is evicted, finished or deactivated.
pub(crate) fn is_evicted(workload: &Workload) -> bool {
    has_status(workload, "Evicted", "True")
        || has_status(workload, "Finished", "True")
        || workload.spec.active == Some(false)
        || workload.metadata.deletion_timestamp.is_some()
}

fn has_status(workload: &Workload, of: &str, status: &str) -> bool {
    let mut all = workload.status.iter().flat_map(|it| &it.conditions);
    all.any(|it| it.type_ == of && it.status == status)
}
