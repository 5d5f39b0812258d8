//! Pure functions over a job and its workload: comparison, and the fields derived from each other.

use super::model::TrackedWorkload;
use crate::job_adapters::{JobView, KINDS, PodPlacement, PodSetView};
use crate::key::JobKey;
use k8s_openapi::api::core::v1::PodSpec;
use lockkeeper_api::workload::{Admission, PodSet, PodSetAssignment};
use lockkeeper_api::{GROUP, VERSION};
use lockkeeper_cluster_state::ClusterState;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The pod group of a job that names a disruption mode.
const POD_GROUP_NAME: &str = "job";

/// Whether a workload has the spec that its job gives it.
pub(super) fn matches_job(workload: &TrackedWorkload, job: &JobView) -> bool {
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
pub(super) fn has_same_priority_classes(workload: &TrackedWorkload, job: &JobView) -> bool {
    let spec = &workload.object.spec;
    let is_same = |of_job: &Option<String>, of_workload| of_job.is_none() || of_job == of_workload;
    is_same(&job.priority_class, &spec.priority_class_name)
        && is_same(
            &job.preemption_priority_class,
            &spec.preemption_priority_class_name,
        )
}

/// Whether a suspended job is the one that its workload was admitted for.
pub(super) fn can_start(job: &JobView, workload: &TrackedWorkload) -> bool {
    if job.saved_placement.is_some() {
        exceeds_admission(job, workload).is_none()
    } else {
        matches_job(workload, job)
    }
}

/// What a started job requests beyond its admission: more pods, or pods with other requests. Fewer pods
/// are allowed: they keep within their quota.
///
/// Source: Kueue `pkg/controller/jobframework`, which stops such a job (`NoMatchingWorkload`), and one with
/// fewer pods too.
pub(super) fn exceeds_admission(job: &JobView, workload: &TrackedWorkload) -> Option<String> {
    // Not started yet: a changed job is compared by `can_start`.
    if job.is_suspended && job.saved_placement.is_none() {
        return None;
    }
    let admission = admission_of(workload)?;
    job.pod_sets.iter().find_map(|pod_set| {
        let name = &pod_set.name;
        let admitted = assignment(admission, name).map_or(0, |it| it.count);
        if pod_set.count > admitted {
            let count = pod_set.count;
            return Some(format!(
                "pod set {name} has {count} pods, and {admitted} were admitted"
            ));
        }
        let mut stored = workload.object.spec.pod_sets.iter();
        let stored = stored.find(|it| it.name() == name)?;
        let is_other = !same_requests(
            pod_set.template.spec.as_ref(),
            stored.template.spec.as_ref(),
        );
        is_other.then(|| format!("the pods of pod set {name} have other resource requests"))
    })
}

/// Whether two pods have the same requests; where they may run is not compared. Both are stripped templates.
fn same_requests(one: Option<&PodSpec>, other: Option<&PodSpec>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            one.containers == other.containers
                && one.init_containers == other.init_containers
                && one.overhead == other.overhead
                && one.resources == other.resources
        }
        (one, other) => one.is_none() && other.is_none(),
    }
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
            add_flavor_placement(cluster, &mut placement, admitted);
        }
        placement
    });
    pod_sets.collect()
}

fn add_flavor_placement(
    cluster: &ClusterState,
    placement: &mut PodPlacement,
    admitted: &PodSetAssignment,
) {
    placement.count = Some(admitted.count);
    // Several resources often have one flavor: a set visits it once.
    let flavors: BTreeSet<&String> = admitted.flavors.values().collect();
    for flavor in flavors
        .into_iter()
        .filter_map(|it| cluster.objects().flavor(it))
    {
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
    for (original, placed) in original.iter_mut().zip(placed) {
        // An unchanged count is not saved: a user may change it before the job has stopped.
        original.count = original.count.filter(|_| original.count != placed.count);
    }
    original
}

/// The placement to restore when a job has stopped: the saved one, without counts changed since the start.
pub(super) fn restored_placement(
    job: &JobView,
    workload: Option<&TrackedWorkload>,
) -> Vec<PodPlacement> {
    let mut original = job.original_placement();
    let admission = workload.and_then(admission_of);
    if let (Some(_), Some(admission)) = (&job.saved_placement, admission) {
        for (placement, pod_set) in original.iter_mut().zip(&job.pod_sets) {
            let admitted = assignment(admission, &pod_set.name);
            // The count differs from the admitted one: a user has changed it since.
            if admitted.is_some_and(|it| it.count != pod_set.count) {
                placement.count = None;
            }
        }
    }
    original
}

/// The manifest of the workload of a job; `None` for an unknown kind.
pub(super) fn workload_manifest(key: &JobKey, job: &JobView) -> Option<Value> {
    let resource = KINDS.get(key.kind)?.resource();
    let workload = job.workload_name(key.kind);
    Some(json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "Workload",
        "metadata": {
            "name": workload.name(),
            "namespace": workload.namespace(),
            "ownerReferences": [{
                "apiVersion": resource.api_version(),
                "kind": resource.kind,
                "name": job.name.name(),
                "uid": job.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": workload_spec(key, job)?,
    }))
}

/// The spec of the workload of a job; `None` for an unknown kind.
pub(super) fn workload_spec(key: &JobKey, job: &JobView) -> Option<Value> {
    let templates = KINDS.get(key.kind)?.templates(job);
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
