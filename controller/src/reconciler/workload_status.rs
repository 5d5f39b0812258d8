//! What is written about a workload.

use super::conditions::{Conditions, find, has_status, status_or_default, status_patch, timestamp};
use super::decision::{PendingDecision, PreemptionDecision};
use super::input::ObjectKey;
use super::job::exceeds_admission;
use super::output::{WriteOp, WritePurpose};
use super::workload::TrackedWorkload;
use super::{JobKey, Reconciler};
use crate::job_adapters::{self, KINDS};
use lockkeeper_api::workload::{RequeueState as StoredState, WorkloadStatus};
use lockkeeper_api::{GROUP, VERSION, Workload};
use lockkeeper_cluster_state::preemption_conditions;
use lockkeeper_preemption::requeue::{
    DeactivationCause, EvictionReason, Jitter, LifecycleStep, RequeueState, next_step,
};
use serde_json::{Value, json};

/// The reason of `QuotaReserved=False` after an eviction.
const PENDING_REASON: &str = "Pending";

/// The message of `DeactivationTarget` for the time that a workload may run.
const EXECUTION_TIME_EXCEEDED_MESSAGE: &str = "exceeding the maximum execution time";

/// The beginning of the message of an eviction for what its job is now.
const JOB_CHANGED_MESSAGE: &str = "The job asks for more than was admitted, and queues again";

/// Why a workload gives its quota back that was never evicted.
const QUOTA_WITHOUT_ADMISSION_MESSAGE: &str =
    "It held quota without being admitted: somebody has changed its status";

impl Reconciler {
    pub(super) fn build_workload_write(
        &mut self,
        name: &ObjectKey,
        what: WritePurpose,
        now_ms: i64,
    ) -> Option<WriteOp> {
        let jitter = self.jitter();
        let known = self.workloads.get(name)?;
        match what {
            WritePurpose::DeleteWorkload => {
                let uid = known.object.metadata.uid.clone()?;
                return Some(WriteOp::Delete { uid });
            }
            WritePurpose::UpdateWorkload => return self.build_workload_update(known),
            _ => {}
        }
        let step = self.next_requeue_step(&known.object, now_ms, jitter);
        if what == WritePurpose::Deactivate && step == LifecycleStep::Deactivate {
            return Some(deactivation_patch(&known.object));
        }
        let status = self.new_status(known, what, step, now_ms)?;
        let seen = &known.object;
        let version = seen.metadata.resource_version.as_deref();
        let patch = status_patch(version, seen.status.as_ref(), &status);
        // One that changes nothing is done only if nothing has changed.
        let probe = || {
            known
                .is_stale
                .then(|| json!({"metadata": {"resourceVersion": version}}))
        };
        let patch = patch.or_else(probe)?;
        let told = match what {
            WritePurpose::Evict => find(&status.conditions, "Evicted"),
            WritePurpose::Deactivate => find(&status.conditions, "DeactivationTarget"),
            _ => None,
        };
        let told = told.map(|it| (it.reason.clone(), it.message.clone()));
        if what == WritePurpose::Evict {
            self.next_random();
        }
        if let Some(known) = self.workloads.get_mut(name) {
            known.in_flight_event = told.map(Box::new);
        }
        Some(WriteOp::PatchStatus(patch))
    }

    fn new_status(
        &self,
        known: &TrackedWorkload,
        what: WritePurpose,
        step: LifecycleStep,
        now_ms: i64,
    ) -> Option<WorkloadStatus> {
        let workload = &*known.object;
        let mut status = status_or_default(workload);
        match what {
            WritePurpose::Admit => write_admission(known, &mut status, now_ms)?,
            WritePurpose::Evict => self.write_eviction(known, &mut status, step, now_ms)?,
            WritePurpose::Release => self.write_quota_release(workload, &mut status, now_ms),
            WritePurpose::Requeue => write_requeue_step(workload, &mut status, step, now_ms)?,
            WritePurpose::PodsReady => self.write_pods_ready(known, &mut status, now_ms)?,
            WritePurpose::Finish => self.write_finished(known, &mut status, now_ms)?,
            WritePurpose::PendingReason => self.report_pending(known, &mut status, now_ms),
            WritePurpose::Deactivate => {
                write_deactivation_target(workload, &mut status, step, now_ms)?
            }
            _ => return None,
        }
        self.set_priorities(workload, &mut status);
        Some(status)
    }

    fn next_requeue_step(&self, workload: &Workload, now_ms: i64, jitter: Jitter) -> LifecycleStep {
        let standing = self.objects.lifecycle_state(workload);
        next_step(&self.settings.requeue, &standing, now_ms, jitter)
    }

    /// The priorities, from the classes, until they stand there.
    pub(super) fn set_priorities(&self, workload: &Workload, status: &mut WorkloadStatus) {
        (status.priority, status.preemption_priority) = self.effective_priorities(workload, status);
    }

    /// The priority and the preemption priority: those that stand there, or else those of the classes.
    pub(super) fn effective_priorities(
        &self,
        workload: &Workload,
        status: &WorkloadStatus,
    ) -> (Option<i32>, Option<i32>) {
        let spec = &workload.spec;
        let class = spec.priority_class_name.as_deref();
        let of_victim = spec.preemption_priority_class_name.as_deref().or(class);
        let of_class = |class| self.objects.priority_for_class(class);
        (
            status.priority.or_else(|| of_class(class)),
            status.preemption_priority.or_else(|| of_class(of_victim)),
        )
    }

    /// By a step of its life, because others take its quota, or because its job has outgrown it. Who has no
    /// owner is at rest from then on: its quota is given back at once.
    fn write_eviction(
        &self,
        known: &TrackedWorkload,
        status: &mut WorkloadStatus,
        step: LifecycleStep,
        now_ms: i64,
    ) -> Option<()> {
        let workload = &*known.object;
        match (&known.decision, step) {
            (_, LifecycleStep::Evict(_)) => write_requeue_step(workload, status, step, now_ms)?,
            (Some(PendingDecision::Preempt(by)), _) => {
                write_preemption(workload, status, by, now_ms)
            }
            _ => {
                let job = self.jobs.get(known.job.as_ref()?)?;
                let why = exceeds_admission(&job.view, known)?;
                let about = format!("{JOB_CHANGED_MESSAGE}: {why}");
                let reason = EvictionReason::JobChanged;
                let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
                conditions.set_renewed("Evicted", reason.as_str(), &reason.message(&about));
            }
        }
        let owners = workload.metadata.owner_references.iter().flatten();
        let has_owner = owners.into_iter().any(|it| it.controller == Some(true));
        if status.admission.is_some() && !has_owner {
            self.write_quota_release(workload, status, now_ms);
        }
        Some(())
    }

    /// The quota is free again. Whether it may be tried again at once depends on why it was evicted.
    ///
    /// Source: Kueue `pkg/controller/jobframework`, the clearing of an admission.
    fn write_quota_release(&self, workload: &Workload, status: &mut WorkloadStatus, now_ms: i64) {
        status.admission = None;
        let evicted = find(&status.conditions, "Evicted").cloned();
        let (reason, message) = evicted.map_or_else(
            || {
                (
                    EvictionReason::Other.as_str().to_owned(),
                    QUOTA_WITHOUT_ADMISSION_MESSAGE.to_owned(),
                )
            },
            |it| (it.reason, it.message),
        );
        let mut after = workload.clone();
        after.status = Some(status.clone());
        let mut standing = self.objects.lifecycle_state(&after);
        standing.on_job_stopped();
        let is_free = standing.not_requeued_reason.is_none();
        let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
        conditions.set("QuotaReserved", false, PENDING_REASON, &message);
        conditions.set_not_admitted();
        conditions.set("Requeued", is_free, &reason, &message);
    }

    fn write_pods_ready(
        &self,
        known: &TrackedWorkload,
        status: &mut WorkloadStatus,
        now_ms: i64,
    ) -> Option<()> {
        let job = self.jobs.get(known.job.as_ref()?)?;
        let was = find(&status.conditions, "PodsReady").is_some();
        let mut conditions = workload_conditions(&known.object, &mut status.conditions, now_ms);
        if job.view.is_ready {
            let reason = if was { "Recovered" } else { "Started" };
            conditions.set("PodsReady", true, reason, "All pods are ready or done");
        } else {
            let message = "Not all pods are ready or done any more";
            conditions.set("PodsReady", false, "WaitForRecovery", message);
        }
        Some(())
    }

    fn write_finished(
        &self,
        known: &TrackedWorkload,
        status: &mut WorkloadStatus,
        now_ms: i64,
    ) -> Option<()> {
        let job = self.jobs.get(known.job.as_ref()?)?;
        let end = job.view.result.as_ref()?;
        let reason = if end.is_success {
            "Succeeded"
        } else {
            "Failed"
        };
        let message = if end.message.is_empty() {
            "The job has ended"
        } else {
            &end.message
        };
        let mut conditions = workload_conditions(&known.object, &mut status.conditions, now_ms);
        conditions.set("Finished", true, reason, message);
        Some(())
    }

    /// It becomes what its job is now.
    fn build_workload_update(&self, known: &TrackedWorkload) -> Option<WriteOp> {
        let name = known.job.as_ref()?;
        let job = &self.jobs.get(name)?.view;
        let spec = workload_spec(name, job)?;
        let version = known.object.metadata.resource_version.as_deref();
        Some(WriteOp::Patch(json!({
            "metadata": {"resourceVersion": version},
            "spec": {
                "queueName": spec.get("queueName"),
                "podSets": spec.get("podSets"),
                "podGroups": spec.get("podGroups"),
                "maximumExecutionTimeSeconds": spec.get("maximumExecutionTimeSeconds"),
            },
        })))
    }
}

/// Whether a workload says what its job says.
pub(super) fn matches_job(known: &TrackedWorkload, job: &job_adapters::JobView) -> bool {
    let spec = &known.object.spec;
    let is_same = |(it, have): (&lockkeeper_api::workload::PodSet, &job_adapters::PodSetView)| {
        it.name() == have.name
            && it.count.unwrap_or(1) == have.count
            && it.min_count == have.min_count
            && it.template == have.template
    };
    has_same_priority_classes(known, job)
        && spec.queue_name.as_deref() == Some(job.queue.as_str())
        && spec.maximum_execution_time_seconds == job.maximum_execution_time_s
        && spec.pod_sets.len() == job.pod_sets.len()
        && spec.pod_sets.iter().zip(&job.pod_sets).all(is_same)
}

/// Whether a workload has the classes that its job names. What the job does not say was filled in.
pub(super) fn has_same_priority_classes(
    known: &TrackedWorkload,
    job: &job_adapters::JobView,
) -> bool {
    let spec = &known.object.spec;
    let is_same = |of_job: &Option<String>, of_it| of_job.is_none() || of_job == of_it;
    is_same(&job.priority_class, &spec.priority_class_name)
        && is_same(
            &job.preemption_priority_class,
            &spec.preemption_priority_class_name,
        )
}

fn write_admission(
    known: &TrackedWorkload,
    status: &mut WorkloadStatus,
    now_ms: i64,
) -> Option<()> {
    let Some(PendingDecision::Admit(grant)) = &known.decision else {
        return None;
    };
    status.admission = Some(grant.admission.clone());
    let mut conditions = workload_conditions(&known.object, &mut status.conditions, now_ms);
    // They begin now, whatever somebody has left standing there.
    conditions.set_renewed("QuotaReserved", "QuotaReserved", &grant.message);
    let queue = &grant.admission.cluster_queue;
    let message = format!("Admitted by ClusterQueue {queue}");
    conditions.set_renewed("Admitted", "Admitted", &message);
    conditions.set_false("Evicted", "QuotaReserved");
    conditions.set_false("Preempted", "QuotaReserved");
    conditions.remove("PodsReady");
    Some(())
}

/// It is marked first, then made inactive: each is one write.
fn write_deactivation_target(
    workload: &Workload,
    status: &mut WorkloadStatus,
    step: LifecycleStep,
    now_ms: i64,
) -> Option<()> {
    if matches!(step, LifecycleStep::SetDeactivationTarget(_)) {
        return write_requeue_step(workload, status, step, now_ms);
    }
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    let reason = DeactivationCause::MaximumExecutionTimeExceeded.as_str();
    conditions.set(
        "DeactivationTarget",
        true,
        reason,
        EXECUTION_TIME_EXCEEDED_MESSAGE,
    );
    Some(())
}

fn deactivation_patch(workload: &Workload) -> WriteOp {
    WriteOp::Patch(json!({
        "metadata": {"resourceVersion": workload.metadata.resource_version},
        "spec": {"active": false},
    }))
}

/// The workload of a job.
pub(super) fn workload_manifest(name: &JobKey, job: &job_adapters::JobView) -> Option<Value> {
    let resource = KINDS.get(name.kind)?.resource();
    let workload = job.workload_name(name.kind);
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
        "spec": workload_spec(name, job)?,
    }))
}

fn workload_spec(name: &JobKey, job: &job_adapters::JobView) -> Option<Value> {
    let templates = KINDS.get(name.kind)?.templates(job);
    let group = job.disruption_mode.map(|mode| (POD_GROUP_NAME, mode));
    let pod_sets = job.pod_sets.iter().zip(templates);
    let pod_sets = pod_sets.map(|(it, template)| {
        let mut out = json!({"name": it.name, "count": it.count, "template": template});
        if let Some(out) = out.as_object_mut() {
            if let Some(least) = it.min_count {
                out.insert("minCount".to_owned(), json!(least));
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
    for (key, class) in classes {
        if let Some(class) = class {
            out.insert(key.to_owned(), json!(class));
        }
    }
    if let Some(most_s) = job.maximum_execution_time_s {
        out.insert("maximumExecutionTimeSeconds".to_owned(), json!(most_s));
    }
    Some(spec)
}

/// The pod group of a job that says how it is disrupted.
const POD_GROUP_NAME: &str = "job";

pub(super) fn workload_conditions<'a>(
    workload: &Workload,
    list: &'a mut Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>,
    now_ms: i64,
) -> Conditions<'a> {
    Conditions {
        list,
        now: timestamp(now_ms),
        generation: workload.metadata.generation,
    }
}

fn write_preemption(
    workload: &Workload,
    status: &mut WorkloadStatus,
    by: &PreemptionDecision,
    now_ms: i64,
) {
    let [evicted, taken] = preemption_conditions(
        by.reason,
        &by.preemptor_uid,
        &by.job_uid,
        &timestamp(now_ms),
        workload.metadata.generation,
    );
    let [from, to] = &by.queue_paths;
    let message = format!(
        "{}; preemptor: {}; preemptor path: {from}; preemptee path: {to}",
        evicted.message, by.preemptor
    );
    let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
    conditions.set_renewed(&evicted.type_, &evicted.reason, &message);
    conditions.set_renewed(&taken.type_, &taken.reason, &message);
}

/// Writes a step of the life into a status.
fn write_requeue_step(
    workload: &Workload,
    status: &mut WorkloadStatus,
    step: LifecycleStep,
    now_ms: i64,
) -> Option<()> {
    let about = || eviction_detail(workload);
    match step {
        LifecycleStep::Idle | LifecycleStep::Wait(_) | LifecycleStep::Deactivate => return None,
        LifecycleStep::SetRequeueState(state) => {
            status.requeue_state = state.map(stored_requeue_state).map(Box::new)
        }
        LifecycleStep::SetDeactivationTarget(target) => {
            let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
            let message = target.message("");
            conditions.set(
                "DeactivationTarget",
                true,
                target.cause().as_str(),
                &message,
            );
        }
        LifecycleStep::Evict(eviction) => {
            let reason = eviction.reason;
            let message = reason.message(&about());
            status.requeue_state = eviction
                .requeue_state
                .map(stored_requeue_state)
                .map(Box::new);
            let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
            conditions.set_renewed("Evicted", reason.as_str(), &message);
            if matches!(reason, EvictionReason::Deactivated(_)) {
                conditions.remove("DeactivationTarget");
            }
        }
        LifecycleStep::ClearRequeueState => {
            status.requeue_state = None;
            let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
            conditions.remove("DeactivationTarget");
        }
        LifecycleStep::Requeue(requeue) => {
            status.requeue_state = requeue
                .requeue_state
                .map(stored_requeue_state)
                .map(Box::new);
            let mut conditions = workload_conditions(workload, &mut status.conditions, now_ms);
            let reason = requeue.reason;
            conditions.set("Requeued", true, reason.as_str(), reason.message());
        }
    }
    Some(())
}

/// What the message of an eviction names.
fn eviction_detail(workload: &Workload) -> String {
    let conditions = workload.status.as_ref().map(|it| it.conditions.as_slice());
    match find(conditions.unwrap_or_default(), "DeactivationTarget") {
        Some(target) if has_status(workload, "DeactivationTarget", "True") => {
            target.message.clone()
        }
        _ => ObjectKey::from_metadata(&workload.metadata).to_string(),
    }
}

fn stored_requeue_state(state: RequeueState) -> StoredState {
    let at = |second: i64| timestamp(second.saturating_mul(1000));
    StoredState {
        count: i32::try_from(state.requeue_count()).unwrap_or(i32::MAX),
        requeue_at: state.requeue_at_s.map(at),
        first_evicted_at: state.first_evicted_at_s.map(at),
    }
}
