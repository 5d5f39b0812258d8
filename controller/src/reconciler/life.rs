//! What is written about a workload.

use super::conditions::{Conditions, find, is, status_of, status_patch, time};
use super::input::Name;
use super::job::outgrown;
use super::order::{Order, Preemption};
use super::output::{Verb, What};
use super::workload::Known;
use super::{JobName, Reconciler};
use crate::jobs::{self, KINDS};
use lockkeeper_api::workload::{RequeueState as StoredState, WorkloadStatus};
use lockkeeper_api::{GROUP, VERSION, Workload};
use lockkeeper_preemption::requeue::{
    DeactivationCause, EvictionReason, Jitter, RequeueState, Step, next_step,
};
use lockkeeper_snapshot::objects::preempted;
use serde_json::{Value, json};

/// The reason of `QuotaReserved=False` after an eviction.
const PENDING: &str = "Pending";

/// The message of `DeactivationTarget` for the time that a workload may run.
const TOO_LONG: &str = "exceeding the maximum execution time";

/// The beginning of the message of an eviction for what its job is now.
const CHANGED: &str = "The job asks for more than was admitted, and queues again";

/// Why a workload gives its quota back that was never evicted.
const HALF: &str = "It held quota without being admitted: somebody has changed its status";

impl Reconciler {
    pub(super) fn draft_workload(&mut self, name: &Name, what: What, now_ms: i64) -> Option<Verb> {
        let jitter = self.jitter();
        let known = self.workloads.get(name)?;
        match what {
            What::DeleteWorkload => {
                let uid = known.seen.metadata.uid.clone()?;
                return Some(Verb::Delete { uid });
            }
            What::UpdateWorkload => return self.draft_update(known),
            _ => {}
        }
        let step = self.next_step_of(&known.seen, now_ms, jitter);
        if what == What::Deactivate && step == Step::Deactivate {
            return Some(deactivation(&known.seen));
        }
        let status = self.new_status(known, what, step, now_ms)?;
        let seen = &known.seen;
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
            What::Evict => find(&status.conditions, "Evicted"),
            What::Deactivate => find(&status.conditions, "DeactivationTarget"),
            _ => None,
        };
        let told = told.map(|it| (it.reason.clone(), it.message.clone()));
        if what == What::Evict {
            self.roll();
        }
        if let Some(known) = self.workloads.get_mut(name) {
            known.last = told.map(Box::new);
        }
        Some(Verb::PatchStatus(patch))
    }

    fn new_status(
        &self,
        known: &Known,
        what: What,
        step: Step,
        now_ms: i64,
    ) -> Option<WorkloadStatus> {
        let workload = &*known.seen;
        let mut status = status_of(workload);
        match what {
            What::Admit => admit(known, &mut status, now_ms)?,
            What::Evict => self.evict(known, &mut status, step, now_ms)?,
            What::Release => self.release(workload, &mut status, now_ms),
            What::Requeue => apply(workload, &mut status, step, now_ms)?,
            What::PodsReady => self.pods_ready(known, &mut status, now_ms)?,
            What::Finish => self.finish(known, &mut status, now_ms)?,
            What::Notice => self.tell_why(known, &mut status, now_ms),
            What::Deactivate => mark_for_deactivation(workload, &mut status, step, now_ms)?,
            _ => return None,
        }
        self.rank(workload, &mut status);
        Some(status)
    }

    fn next_step_of(&self, workload: &Workload, now_ms: i64, jitter: Jitter) -> Step {
        let standing = self.objects.standing(workload);
        next_step(&self.settings.requeue, &standing, now_ms, jitter)
    }

    /// The priorities, from the classes, until they stand there.
    pub(super) fn rank(&self, workload: &Workload, status: &mut WorkloadStatus) {
        (status.priority, status.preemption_priority) = self.ranks(workload, status);
    }

    /// The priority and the preemption priority: those that stand there, or else those of the classes.
    pub(super) fn ranks(
        &self,
        workload: &Workload,
        status: &WorkloadStatus,
    ) -> (Option<i32>, Option<i32>) {
        let spec = &workload.spec;
        let class = spec.priority_class_name.as_deref();
        let of_victim = spec.preemption_priority_class_name.as_deref().or(class);
        let of_class = |class| self.objects.priority_of(class);
        (
            status.priority.or_else(|| of_class(class)),
            status.preemption_priority.or_else(|| of_class(of_victim)),
        )
    }

    /// By a step of its life, because others take its quota, or because its job has outgrown it. Who has no
    /// owner is at rest from then on: its quota is given back at once.
    fn evict(
        &self,
        known: &Known,
        status: &mut WorkloadStatus,
        step: Step,
        now_ms: i64,
    ) -> Option<()> {
        let workload = &*known.seen;
        match (&known.order, step) {
            (_, Step::Evict(_)) => apply(workload, status, step, now_ms)?,
            (Some(Order::Preempt(by)), _) => preempt(workload, status, by, now_ms),
            _ => {
                let job = self.jobs.get(known.job.as_ref()?)?;
                let why = outgrown(&job.seen, known)?;
                let about = format!("{CHANGED}: {why}");
                let reason = EvictionReason::JobChanged;
                let mut conditions = conditions(workload, &mut status.conditions, now_ms);
                conditions.renew("Evicted", reason.as_str(), &reason.message(&about));
            }
        }
        let owners = workload.metadata.owner_references.iter().flatten();
        let has_owner = owners.into_iter().any(|it| it.controller == Some(true));
        if status.admission.is_some() && !has_owner {
            self.release(workload, status, now_ms);
        }
        Some(())
    }

    /// The quota is free again. Whether it may be tried again at once depends on why it was evicted.
    ///
    /// Source: Kueue `pkg/controller/jobframework`, the clearing of an admission.
    fn release(&self, workload: &Workload, status: &mut WorkloadStatus, now_ms: i64) {
        status.admission = None;
        let evicted = find(&status.conditions, "Evicted").cloned();
        let (reason, message) = evicted.map_or_else(
            || (EvictionReason::Other.as_str().to_owned(), HALF.to_owned()),
            |it| (it.reason, it.message),
        );
        let mut after = workload.clone();
        after.status = Some(status.clone());
        let mut standing = self.objects.standing(&after);
        standing.job_stopped();
        let is_free = standing.held_for.is_none();
        let mut conditions = conditions(workload, &mut status.conditions, now_ms);
        conditions.set("QuotaReserved", false, PENDING, &message);
        conditions.end_admission();
        conditions.set("Requeued", is_free, &reason, &message);
    }

    fn pods_ready(&self, known: &Known, status: &mut WorkloadStatus, now_ms: i64) -> Option<()> {
        let job = self.jobs.get(known.job.as_ref()?)?;
        let was = find(&status.conditions, "PodsReady").is_some();
        let mut conditions = conditions(&known.seen, &mut status.conditions, now_ms);
        if job.seen.is_ready {
            let reason = if was { "Recovered" } else { "Started" };
            conditions.set("PodsReady", true, reason, "All pods are ready or done");
        } else {
            let message = "Not all pods are ready or done any more";
            conditions.set("PodsReady", false, "WaitForRecovery", message);
        }
        Some(())
    }

    fn finish(&self, known: &Known, status: &mut WorkloadStatus, now_ms: i64) -> Option<()> {
        let job = self.jobs.get(known.job.as_ref()?)?;
        let end = job.seen.ended.as_ref()?;
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
        let mut conditions = conditions(&known.seen, &mut status.conditions, now_ms);
        conditions.set("Finished", true, reason, message);
        Some(())
    }

    /// It becomes what its job is now.
    fn draft_update(&self, known: &Known) -> Option<Verb> {
        let name = known.job.as_ref()?;
        let job = &self.jobs.get(name)?.seen;
        let spec = spec_of(name, job)?;
        let version = known.seen.metadata.resource_version.as_deref();
        Some(Verb::Patch(json!({
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
pub(super) fn follows(known: &Known, job: &jobs::Seen) -> bool {
    let spec = &known.seen.spec;
    let is_same = |(it, have): (&lockkeeper_api::workload::PodSet, &jobs::PodSetSeen)| {
        it.name() == have.name
            && it.count.unwrap_or(1) == have.count
            && it.min_count == have.min_count
            && it.template == have.template
    };
    has_same_classes(known, job)
        && spec.queue_name.as_deref() == Some(job.queue.as_str())
        && spec.maximum_execution_time_seconds == job.maximum_execution_time_s
        && spec.pod_sets.len() == job.pod_sets.len()
        && spec.pod_sets.iter().zip(&job.pod_sets).all(is_same)
}

/// Whether a workload has the classes that its job names. What the job does not say was filled in.
pub(super) fn has_same_classes(known: &Known, job: &jobs::Seen) -> bool {
    let spec = &known.seen.spec;
    let is_same = |of_job: &Option<String>, of_it| of_job.is_none() || of_job == of_it;
    is_same(&job.priority_class, &spec.priority_class_name)
        && is_same(
            &job.preemption_priority_class,
            &spec.preemption_priority_class_name,
        )
}

fn admit(known: &Known, status: &mut WorkloadStatus, now_ms: i64) -> Option<()> {
    let Some(Order::Admit(grant)) = &known.order else {
        return None;
    };
    status.admission = Some(grant.admission.clone());
    let mut conditions = conditions(&known.seen, &mut status.conditions, now_ms);
    // They begin now, whatever somebody has left standing there.
    conditions.renew("QuotaReserved", "QuotaReserved", &grant.why);
    let queue = &grant.admission.cluster_queue;
    let message = format!("Admitted by ClusterQueue {queue}");
    conditions.renew("Admitted", "Admitted", &message);
    conditions.end("Evicted", "QuotaReserved");
    conditions.end("Preempted", "QuotaReserved");
    conditions.remove("PodsReady");
    Some(())
}

/// It is marked first, then made inactive: each is one write.
fn mark_for_deactivation(
    workload: &Workload,
    status: &mut WorkloadStatus,
    step: Step,
    now_ms: i64,
) -> Option<()> {
    if matches!(step, Step::Target(_)) {
        return apply(workload, status, step, now_ms);
    }
    let mut conditions = conditions(workload, &mut status.conditions, now_ms);
    let reason = DeactivationCause::MaximumExecutionTimeExceeded.as_str();
    conditions.set("DeactivationTarget", true, reason, TOO_LONG);
    Some(())
}

fn deactivation(workload: &Workload) -> Verb {
    Verb::Patch(json!({
        "metadata": {"resourceVersion": workload.metadata.resource_version},
        "spec": {"active": false},
    }))
}

/// The workload of a job.
pub(super) fn workload_of(name: &JobName, job: &jobs::Seen) -> Option<Value> {
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
        "spec": spec_of(name, job)?,
    }))
}

fn spec_of(name: &JobName, job: &jobs::Seen) -> Option<Value> {
    let templates = KINDS.get(name.kind)?.templates(job);
    let group = job.disruption_mode.map(|mode| (GROUP_NAME, mode));
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
const GROUP_NAME: &str = "job";

pub(super) fn conditions<'a>(
    workload: &Workload,
    list: &'a mut Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition>,
    now_ms: i64,
) -> Conditions<'a> {
    Conditions {
        list,
        now: time(now_ms),
        generation: workload.metadata.generation,
    }
}

fn preempt(workload: &Workload, status: &mut WorkloadStatus, by: &Preemption, now_ms: i64) {
    let [evicted, taken] = preempted(
        by.reason,
        &by.preemptor_uid,
        &by.job_uid,
        &time(now_ms),
        workload.metadata.generation,
    );
    let [from, to] = &by.paths;
    let message = format!(
        "{}; preemptor: {}; preemptor path: {from}; preemptee path: {to}",
        evicted.message, by.preemptor
    );
    let mut conditions = conditions(workload, &mut status.conditions, now_ms);
    conditions.renew(&evicted.type_, &evicted.reason, &message);
    conditions.renew(&taken.type_, &taken.reason, &message);
}

/// Writes a step of the life into a status.
fn apply(workload: &Workload, status: &mut WorkloadStatus, step: Step, now_ms: i64) -> Option<()> {
    let about = || about(workload);
    match step {
        Step::Rest | Step::Wait(_) | Step::Deactivate => return None,
        Step::Record(state) => status.requeue_state = state.map(stored).map(Box::new),
        Step::Target(target) => {
            let mut conditions = conditions(workload, &mut status.conditions, now_ms);
            let message = target.message("");
            conditions.set(
                "DeactivationTarget",
                true,
                target.cause().as_str(),
                &message,
            );
        }
        Step::Evict(eviction) => {
            let reason = eviction.reason;
            let message = reason.message(&about());
            status.requeue_state = eviction.state.map(stored).map(Box::new);
            let mut conditions = conditions(workload, &mut status.conditions, now_ms);
            conditions.renew("Evicted", reason.as_str(), &message);
            if matches!(reason, EvictionReason::Deactivated(_)) {
                conditions.remove("DeactivationTarget");
            }
        }
        Step::Forget => {
            status.requeue_state = None;
            let mut conditions = conditions(workload, &mut status.conditions, now_ms);
            conditions.remove("DeactivationTarget");
        }
        Step::Requeue(requeue) => {
            status.requeue_state = requeue.state.map(stored).map(Box::new);
            let mut conditions = conditions(workload, &mut status.conditions, now_ms);
            let reason = requeue.reason;
            conditions.set("Requeued", true, reason.as_str(), reason.message());
        }
    }
    Some(())
}

/// What the message of an eviction names.
fn about(workload: &Workload) -> String {
    let conditions = workload.status.as_ref().map(|it| it.conditions.as_slice());
    match find(conditions.unwrap_or_default(), "DeactivationTarget") {
        Some(target) if is(workload, "DeactivationTarget", "True") => target.message.clone(),
        _ => Name::of(&workload.metadata).to_string(),
    }
}

fn stored(state: RequeueState) -> StoredState {
    let at = |second: i64| time(second.saturating_mul(1000));
    StoredState {
        count: i32::try_from(state.times()).unwrap_or(i32::MAX),
        requeue_at: state.requeue_at_s.map(at),
        first_evicted_at: state.first_evicted_at_s.map(at),
    }
}
