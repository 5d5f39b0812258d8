//! Jobs: they get a workload, start when it is admitted, and stop when it is evicted.

use super::input::{Change, JobKey, Kind, ObjectKey};
use super::output::{ObjectRef, WriteOp, WritePurpose, WriteResult};
use super::workload::TrackedWorkload;
use super::workload_status::{matches_job, workload_manifest};
use super::{Plan, Reconciler, WriteTracker};
use crate::job_adapters::{JobView, KINDS, PodPlacement};
use k8s_openapi::api::core::v1::PodSpec;
use lockkeeper_api::labels;
use lockkeeper_api::workload::PodSetAssignment;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A job.
#[derive(Debug)]
pub(super) struct TrackedJob {
    pub(super) view: Box<JobView>,
    pub(super) tracker: WriteTracker,
    /// The version at which its workload was made; it has not been seen yet.
    pub(super) workload_created_at: Option<u64>,
}

impl Reconciler {
    pub(super) fn observe_job(&mut self, kind: usize, change: Change<Box<JobView>>) {
        match change {
            // It is started and stopped with the job that it is a part of.
            Change::Applied(seen) if seen.is_part => self.remove_job(kind, seen.name),
            Change::Applied(seen) => {
                let name = JobKey {
                    kind,
                    name: seen.name.clone(),
                };
                let known = self.jobs.entry(name.clone()).or_insert_with(|| TrackedJob {
                    view: seen.clone(),
                    tracker: WriteTracker::default(),
                    workload_created_at: None,
                });
                if known.view.uid != seen.uid {
                    known.tracker = WriteTracker::default();
                    known.workload_created_at = None;
                }
                known.tracker.observe(seen.version);
                if known.tracker.version == seen.version {
                    known.view = seen;
                }
                let workload = known.view.workload_name(kind);
                self.work_queue.enqueue(ObjectRef::Workload(workload));
                self.work_queue.enqueue(ObjectRef::Job(name));
            }
            Change::Deleted(name) => self.remove_job(kind, name),
        }
    }

    fn remove_job(&mut self, kind: usize, name: ObjectKey) {
        let name = JobKey { kind, name };
        if let Some(known) = self.jobs.remove(&name) {
            let workload = known.view.workload_name(kind);
            self.work_queue.enqueue(ObjectRef::Workload(workload));
        }
    }

    pub(super) fn handle_job_write_result(
        &mut self,
        name: &JobKey,
        what: WritePurpose,
        outcome: &WriteResult,
    ) {
        let Some(known) = self.jobs.get_mut(name) else {
            return;
        };
        if what == WritePurpose::CreateWorkload {
            known.workload_created_at = match outcome {
                // What was made and has been seen may be gone again.
                WriteResult::Done(version) => {
                    Some(*version).filter(|it| *it > self.newest_workload_version)
                }
                WriteResult::DryRun => Some(u64::MAX),
                _ => None,
            };
        }
        let workload = known.view.workload_name(name.kind);
        self.work_queue.enqueue(ObjectRef::Workload(workload));
        if let WriteResult::Rejected(why) = outcome {
            self.event_recorder
                .record_rejected_job_write(name, what, why);
        }
    }

    /// What a job has to write.
    pub(super) fn plan_job(&self, name: &JobKey) -> Plan {
        let Some(known) = self.jobs.get(name) else {
            return Plan::NOTHING;
        };
        let job = &*known.view;
        if job.is_deleted || job.result.is_some() || !self.is_listed(Kind::Workload) {
            return Plan::NOTHING;
        }
        let workload = self.workloads.get(&job.workload_name(name.kind));
        let runs = !job.is_suspended || known.tracker.outcome_unknown;
        // One that is just started is not suspended before whoever makes its pods says that it knows. It may
        // be making them, and would never say that it knew: the job would look as if it had never run.
        let is_suspendable = !job.is_start_unconfirmed;
        let what = match workload {
            Some(it) if it.object.metadata.deletion_timestamp.is_some() => None,
            Some(it) if !it.tracker.is_settled() => None,
            // Another job than was admitted does not start; it stops, and gets another workload.
            Some(it) if it.should_run() && (!job.is_suspended || can_start(job, it)) => {
                plan_start(job, &self.admitted_placements(job, it))
            }
            _ if runs => is_suspendable.then_some(WritePurpose::SuspendJob),
            _ if !job.is_stopped() => plan_stop(job),
            None => known
                .workload_created_at
                .is_none()
                .then_some(WritePurpose::CreateWorkload),
            Some(_) => None,
        };
        what.map_or(Plan::NOTHING, Plan::write)
    }

    /// The pods of a job as its workload was admitted: with the labels and tolerations of the flavors.
    fn admitted_placements(&self, job: &JobView, workload: &TrackedWorkload) -> Vec<PodPlacement> {
        let admission = workload.object.status.as_ref();
        let admission = admission.and_then(|it| it.admission.as_ref());
        let given = |name: &str| {
            let mut all = admission
                .iter()
                .flat_map(|it| it.pod_set_assignments.iter());
            all.find(|it| it.name == name)
        };
        let pod_sets = job.pod_sets.iter().zip(job.original_placement());
        let pod_sets = pod_sets.map(|(it, mut placed)| {
            if let Some(given) = given(&it.name) {
                self.add_flavor_placement(&mut placed, given);
            }
            placed
        });
        pod_sets.collect()
    }

    fn add_flavor_placement(&self, placed: &mut PodPlacement, given: &PodSetAssignment) {
        placed.count = Some(given.count);
        let flavors: BTreeSet<&String> = given.flavors.values().collect();
        let flavors = flavors.into_iter().filter_map(|it| self.objects.flavor(it));
        for flavor in flavors {
            for (key, value) in &flavor.node_labels {
                placed.node_selector.insert(key.clone(), value.clone());
            }
            for toleration in &flavor.tolerations {
                if !placed.tolerations.contains(toleration) {
                    placed.tolerations.push(toleration.clone());
                }
            }
        }
    }

    pub(super) fn build_job_write(&mut self, name: &JobKey, what: WritePurpose) -> Option<WriteOp> {
        let kind = KINDS.get(name.kind)?;
        let known = self.jobs.get(name)?;
        let job = &*known.view;
        let version = job.version.to_string();
        let patch = |spec: Value| json!({"metadata": {"resourceVersion": version}, "spec": spec});
        let noted = |spec: Value, original: Value| {
            let annotations = json!({labels::ORIGINAL_PLACEMENT: original});
            json!({
                "metadata": {"resourceVersion": version, "annotations": annotations},
                "spec": spec,
            })
        };
        let workload = self.workloads.get(&job.workload_name(name.kind));
        Some(match what {
            WritePurpose::CreateWorkload => WriteOp::Create(workload_manifest(name, job)?),
            WritePurpose::SuspendJob => {
                let suspended = json!({"suspend": true});
                let restored = restored_placement(job, workload.map(Box::as_ref));
                if job
                    .saved_placement
                    .as_ref()
                    .is_none_or(|it| *it == restored)
                {
                    return Some(WriteOp::Patch(patch(suspended)));
                }
                // What its user has changed is not undone, whatever becomes of its workload meanwhile.
                let original = serde_json::to_string(&restored).ok()?;
                WriteOp::Patch(noted(suspended, json!(original)))
            }
            WritePurpose::StartJob => {
                let placed = self.admitted_placements(job, workload?);
                if job.has_placement(&placed) {
                    return Some(WriteOp::Patch(patch(json!({"suspend": false}))));
                }
                let mut spec = kind.placement_patch(job, &placed);
                let object = spec.as_object_mut()?;
                object.insert("suspend".to_owned(), json!(false));
                let original = serde_json::to_string(&original_placement(job, &placed)).ok()?;
                WriteOp::Patch(noted(spec, json!(original)))
            }
            WritePurpose::RestoreJob => {
                let restored = restored_placement(job, workload.map(Box::as_ref));
                WriteOp::Patch(noted(kind.placement_patch(job, &restored), Value::Null))
            }
            WritePurpose::ResetJob => WriteOp::PatchStatus(json!({
                "metadata": {"resourceVersion": version},
                "status": {"startTime": null},
            })),
            _ => return None,
        })
    }
}

/// What is noted of a job that gets this placement. A number that stays is not: its user may change it before
/// the job has stopped.
fn original_placement(job: &JobView, placed: &[PodPlacement]) -> Vec<PodPlacement> {
    let mut original = job.original_placement();
    for (it, placed) in original.iter_mut().zip(placed) {
        it.count = it.count.filter(|_| it.count != placed.count);
    }
    original
}

fn plan_start(job: &JobView, placed: &[PodPlacement]) -> Option<WritePurpose> {
    if !job.is_suspended {
        return None;
    }
    if job.has_placement(placed) || !job.has_start_time {
        return Some(WritePurpose::StartJob);
    }
    // Its template can be changed only without a start time.
    job.is_quiescent.then_some(WritePurpose::ResetJob)
}

/// Whether a suspended job is what its workload was admitted for.
pub(super) fn can_start(job: &JobView, workload: &TrackedWorkload) -> bool {
    if job.saved_placement.is_some() {
        exceeds_admission(job, workload).is_none()
    } else {
        matches_job(workload, job)
    }
}

/// What a job asks for beyond that for which its workload was admitted, once it was started: more pods, or pods
/// that ask for something else. Fewer pods are left alone: they keep within their quota.
///
/// Source: Kueue `pkg/controller/jobframework`, which stops such a job (`NoMatchingWorkload`), and one with
/// fewer pods too.
pub(super) fn exceeds_admission(job: &JobView, workload: &TrackedWorkload) -> Option<String> {
    if job.is_suspended && job.saved_placement.is_none() {
        return None;
    }
    let given = workload.object.status.as_ref()?.admission.as_ref()?;
    job.pod_sets.iter().find_map(|have| {
        let name = &have.name;
        let mut given = given.pod_set_assignments.iter();
        let count = given.find(|it| it.name == *name).map_or(0, |it| it.count);
        if have.count > count {
            let now = have.count;
            return Some(format!(
                "pod set {name} has {now} pods, and {count} were admitted"
            ));
        }
        let mut pod_sets = workload.object.spec.pod_sets.iter();
        let pod_set = pod_sets.find(|it| it.name() == name)?;
        let is_other = !same_requests(have.template.spec.as_ref(), pod_set.template.spec.as_ref());
        is_other.then(|| format!("the pods of pod set {name} ask for other resources"))
    })
}

/// Whether pods ask for the same, wherever they may run. Both have only what is used of them.
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

/// How the pods of a stopped job are to be: as they were noted, but for a number of pods that is not the one
/// it was admitted with. Its user has changed that since.
fn restored_placement(job: &JobView, workload: Option<&TrackedWorkload>) -> Vec<PodPlacement> {
    let mut original = job.original_placement();
    let admission = workload.and_then(|it| it.object.status.as_ref()?.admission.as_ref());
    if let (Some(_), Some(admission)) = (&job.saved_placement, admission) {
        for (placed, have) in original.iter_mut().zip(&job.pod_sets) {
            let mut given = admission.pod_set_assignments.iter();
            let given = given.find(|it| it.name == have.name);
            if given.is_some_and(|it| it.count != have.count) {
                placed.count = None;
            }
        }
    }
    original
}

/// The rest of stopping, after it is suspended. Each part is safe to repeat; done is it when its workload may
/// give the quota back.
fn plan_stop(job: &JobView) -> Option<WritePurpose> {
    if !job.is_quiescent {
        None
    } else if job.has_start_time {
        Some(WritePurpose::ResetJob)
    } else {
        job.saved_placement
            .is_some()
            .then_some(WritePurpose::RestoreJob)
    }
}

/// The name of the object that a job is, for messages.
pub(super) fn kind_and_key(name: &JobKey) -> (&'static str, &ObjectKey) {
    let kind = KINDS.get(name.kind).map_or("Job", |it| it.resource().kind);
    (kind, &name.name)
}
