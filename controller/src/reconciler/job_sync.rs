//! Pure functions over a job and its workload: comparison, and the fields derived from each other.

use super::model::TrackedWorkload;
use crate::job_adapters::{
    JobKinds, JobView, POD_GROUP, PodPlacement, PodSetView, has_same_requests,
};
use crate::key::JobKey;
use lockkeeper_api::workload::{Admission, PodSet, PodSetAssignment, ReclaimablePod};
use lockkeeper_api::{GROUP, VERSION, labels};
use lockkeeper_cluster_state::{ClusterState, assigned_flavors};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The pod group of a job that names a disruption mode.
const POD_GROUP_NAME: &str = "job";

/// How a pending workload follows its job.
pub(super) enum SpecChange {
    Update,
    Recreate,
}

/// The change of a workload without quota whose stopped job differs from it.
pub(super) fn spec_change(workload: &TrackedWorkload, job: &JobView) -> Option<SpecChange> {
    if !job.is_stopped() || job.is_deleted || job.is_incomplete || matches_job(workload, job) {
        return None;
    }
    // Priority classes are immutable: a workload with another class is created again.
    Some(if has_same_priority_classes(workload, job) {
        SpecChange::Update
    } else {
        SpecChange::Recreate
    })
}

/// Whether a workload has the spec that its job gives it.
fn matches_job(workload: &TrackedWorkload, job: &JobView) -> bool {
    let spec = &workload.object.spec;
    let is_same = |(of_workload, of_job): (&PodSet, &PodSetView)| {
        of_workload.name() == of_job.name
            && of_workload.count.unwrap_or(1) == of_job.count
            && of_workload.min_count == of_job.min_count
            && of_workload.template == of_job.template
    };
    has_same_priority_classes(workload, job)
        && spec.queue_name.as_deref() == Some(job.queue.as_str())
        && spec.maximum_execution_time_seconds == job.maximum_execution_time_s
        && spec.pod_sets.len() == job.pod_sets.len()
        && spec.pod_sets.iter().zip(&job.pod_sets).all(is_same)
}

/// Whether a workload has the priority classes that its job names. A class that the job leaves unset was
/// defaulted.
fn has_same_priority_classes(workload: &TrackedWorkload, job: &JobView) -> bool {
    let spec = &workload.object.spec;
    let is_same = |of_job: &Option<String>, of_workload| of_job.is_none() || of_job == of_workload;
    is_same(&job.priority_class, &spec.priority_class_name)
        && is_same(
            &job.preemption_priority_class,
            &spec.preemption_priority_class_name,
        )
}

/// Whether a suspended job is the one that its workload was admitted for, and its own controller runs it.
pub(super) fn can_start(job: &JobView, workload: &TrackedWorkload) -> bool {
    if job.foreign_manager.is_some() || job.is_incomplete {
        return false;
    }
    if job.saved_placement.is_some() {
        admission_mismatch(job, workload).is_none()
    } else {
        matches_job(workload, job)
    }
}

/// The change of a started job that its admission does not cover: more pods, other requests, another queue.
pub(super) fn admission_mismatch(job: &JobView, workload: &TrackedWorkload) -> Option<String> {
    if let Some(excess) = exceeds_admission(job, workload) {
        return Some(format!(
            "The job requests more than was admitted; it is queued again: {excess}"
        ));
    }
    let is_started = !job.is_suspended || job.saved_placement.is_some();
    let admitted = workload.object.spec.queue_name.as_deref();
    let admitted = admitted.unwrap_or_default();
    (is_started && admitted != job.queue).then(|| {
        let queue = &job.queue;
        format!(
            "The job names another LocalQueue; it is queued again: {queue}, and it was admitted through {admitted}"
        )
    })
}

/// What a started job requests beyond its admission: more pods, or pods with other requests. Fewer pods
/// are allowed: they keep within their quota.
///
/// Source: Kueue `pkg/controller/jobframework`, which stops such a job (`NoMatchingWorkload`), and one with
/// fewer pods too.
fn exceeds_admission(job: &JobView, workload: &TrackedWorkload) -> Option<String> {
    // Not started yet: a changed job is compared by `can_start`.
    if job.is_suspended && job.saved_placement.is_none() {
        return None;
    }
    let status = workload.object.status.as_ref()?;
    let admission = status.admission.as_ref()?;
    job.pod_sets.iter().find_map(|pod_set| {
        let name = &pod_set.name;
        let assigned = assignment(admission, name);
        let admitted = assigned.map_or(0, |it| it.count);
        let kept = assigned.map_or(0, |it| it.count.saturating_sub(status.reclaimed(it)));
        if pod_set.count > admitted {
            let count = pod_set.count;
            return Some(format!(
                "pod set {name} has {count} pods, and {admitted} were admitted"
            ));
        }
        if pod_set.remaining > kept {
            let remaining = pod_set.remaining;
            return Some(format!(
                "{remaining} pods of pod set {name} are left to run, and the quota of {kept} is kept"
            ));
        }
        let mut stored = workload.object.spec.pod_sets.iter();
        let stored = stored.find(|it| it.name() == name)?;
        let is_other = !has_same_requests(
            pod_set.template.spec.as_ref(),
            stored.template.spec.as_ref(),
        );
        is_other.then(|| format!("the pods of pod set {name} have other resource requests"))
    })
}

/// The reclaimable pods of a running job if they are more than its workload shows. None while no pod is left to run:
/// the job is about to finish, and releases all its quota then.
///
/// Source: Kueue `pkg/controller/jobs/job`, `ReclaimablePods`.
pub(super) fn more_reclaimable_pods(
    job: &JobView,
    workload: &TrackedWorkload,
) -> Option<Vec<ReclaimablePod>> {
    if job.is_suspended || job.is_deleted || job.pod_sets.iter().all(|it| it.remaining <= 0) {
        return None;
    }
    let status = workload.object.status.as_ref()?;
    let admission = status.admission.as_ref()?;
    let mut is_more = false;
    let mut all = Vec::new();
    for assigned in &admission.pod_set_assignments {
        let before = status.reclaimed(assigned);
        let mut pod_sets = job.pod_sets.iter();
        let found = pod_sets.find(|it| it.name == assigned.name);
        // Pods that the user has taken away may be added again: only those that have succeeded are reclaimable.
        let ended = found.filter(|it| it.remaining < it.count);
        let now = ended.map_or(0, |it| assigned.count.saturating_sub(it.remaining));
        is_more |= now > before;
        let count = now.max(before);
        if count > 0 {
            let name = assigned.name.clone();
            all.push(ReclaimablePod { name, count });
        }
    }
    is_more.then_some(all)
}

fn admission_of(workload: &TrackedWorkload) -> Option<&Admission> {
    workload.object.status.as_ref()?.admission.as_ref()
}

fn assignment<'a>(admission: &'a Admission, pod_set: &str) -> Option<&'a PodSetAssignment> {
    let mut all = admission.pod_set_assignments.iter();
    all.find(|it| it.name == pod_set)
}

/// The pods of a job as its workload was admitted: with the node labels and tolerations of the flavors.
pub(super) fn admitted_placements(
    cluster: &ClusterState,
    job: &JobView,
    workload: &TrackedWorkload,
) -> Vec<PodPlacement> {
    let admission = admission_of(workload);
    let pod_sets = job.pod_sets.iter().zip(job.original_placement());
    let pod_sets = pod_sets.map(|(pod_set, mut placement)| {
        if let Some(admitted) = admission.and_then(|it| assignment(it, &pod_set.name)) {
            let wanted = wanted_count(&placement, pod_set);
            add_flavor_placement(cluster, &mut placement, admitted);
            placement.count = Some(wanted.min(admitted.count));
        }
        placement
    });
    pod_sets.collect()
}

/// The number of pods that the user wants: the saved count, unless the user has changed the count since the start.
fn wanted_count(original: &PodPlacement, pod_set: &PodSetView) -> i32 {
    let is_unchanged = original.started_count.is_none_or(|it| it == pod_set.count);
    original
        .count
        .filter(|_| is_unchanged)
        .unwrap_or(pod_set.count)
}

fn add_flavor_placement(
    cluster: &ClusterState,
    placement: &mut PodPlacement,
    admitted: &PodSetAssignment,
) {
    for flavor in assigned_flavors(cluster, admitted) {
        for (key, value) in &flavor.node_labels {
            placement.node_selector.insert(key.clone(), value.clone());
        }
        for toleration in &flavor.tolerations {
            if !placement.tolerations.contains(toleration) {
                placement.tolerations.push(toleration.clone());
            }
        }
    }
}

/// The placement to save on a job that is started with `placed`.
pub(super) fn original_placement(job: &JobView, placed: &[PodPlacement]) -> Vec<PodPlacement> {
    let mut original = job.original_placement();
    let pairs = original.iter_mut().zip(placed);
    for ((original, placed), pod_set) in pairs.zip(&job.pod_sets) {
        let wanted = Some(wanted_count(original, pod_set));
        // An unchanged count is not saved: a user may change it before the job has stopped.
        original.count = wanted.filter(|_| wanted != placed.count);
        original.started_count = placed.count.filter(|_| original.count.is_some());
    }
    original
}

/// The placement to restore when a job has stopped: the saved one, without counts changed since the start.
pub(super) fn restored_placement(
    job: &JobView,
    workload: Option<&TrackedWorkload>,
) -> Vec<PodPlacement> {
    let mut original = job.original_placement();
    if job.saved_placement.is_none() {
        return original;
    }
    let admission = workload.and_then(admission_of);
    for (placement, pod_set) in original.iter_mut().zip(&job.pod_sets) {
        // Placements saved by earlier versions have no count of the start. The admission may be a later one.
        let started = placement.started_count.or_else(|| {
            let admitted = assignment(admission?, &pod_set.name);
            admitted.map(|it| it.count)
        });
        // A user has changed the count since the start.
        if started.is_some_and(|it| it != pod_set.count) {
            placement.count = None;
            placement.started_count = None;
        }
    }
    original
}

/// The manifest of the workload of a job with the text of its templates; `None` for an unknown kind.
pub(super) fn workload_manifest(
    kinds: &JobKinds,
    key: &JobKey,
    job: &JobView,
    source: &str,
) -> Option<Value> {
    let resource = kinds.get(key.kind)?.resource();
    let workload = job.workload_name(key.kind);
    let mut labels = BTreeMap::from([(labels::JOB_UID, job.uid.as_str())]);
    let owners = if key.kind == POD_GROUP {
        // A group is no object: the controller deletes the workload with the last pod.
        labels.insert(labels::POD_GROUP_NAME, job.name.name());
        json!([])
    } else {
        json!([{
            "apiVersion": resource.api_version(),
            "kind": resource.kind,
            "name": job.name.name(),
            "uid": job.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }])
    };
    Some(json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "Workload",
        "metadata": {
            "name": workload.name(),
            "namespace": workload.namespace(),
            "labels": labels,
            "ownerReferences": owners,
        },
        "spec": workload_spec(kinds, key, job, source)?,
    }))
}

/// The spec of the workload of a job with the text of its templates; `None` for an unknown kind.
pub(super) fn workload_spec(
    kinds: &JobKinds,
    key: &JobKey,
    job: &JobView,
    source: &str,
) -> Option<Value> {
    let templates = kinds.get(key.kind)?.templates(source);
    let group = job.disruption_mode.map(|mode| (POD_GROUP_NAME, mode));
    let pod_sets = job.pod_sets.iter().zip(templates);
    let pod_sets = pod_sets.map(|(pod_set, template)| {
        let mut out = json!({"name": pod_set.name, "count": pod_set.count, "template": template});
        if let Some(out) = out.as_object_mut() {
            if let Some(min_count) = pod_set.min_count {
                out.insert("minCount".to_owned(), json!(min_count));
            }
            if let Some((name, _)) = group {
                out.insert("podGroupName".to_owned(), json!(name));
            }
        }
        out
    });
    let mut spec = json!({"queueName": job.queue, "podSets": pod_sets.collect::<Vec<_>>()});
    let out = spec.as_object_mut()?;
    if let Some((name, mode)) = group {
        let groups = json!([{"name": name, "disruptionMode": mode}]);
        out.insert("podGroups".to_owned(), groups);
    }
    let classes = [
        ("priorityClassName", &job.priority_class),
        (
            "preemptionPriorityClassName",
            &job.preemption_priority_class,
        ),
    ];
    for (field, class) in classes {
        if let Some(class) = class {
            out.insert(field.to_owned(), json!(class));
        }
    }
    if let Some(max_s) = job.maximum_execution_time_s {
        out.insert("maximumExecutionTimeSeconds".to_owned(), json!(max_s));
    }
    Some(spec)
}
