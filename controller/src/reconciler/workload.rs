//! The workloads as they are seen, and what they have to write.

use super::conditions::{epoch_seconds, find, has_status};
use super::decision::PendingDecision;
use super::input::{Change, ObjectKey};
use super::job::{TrackedJob, can_start, exceeds_admission};
use super::output::{ObjectRef, WritePurpose, WriteResult};
use super::workload_status::{has_same_priority_classes, matches_job};
use super::{JobKey, Kind, Plan, Reconciler, WriteTracker};
use crate::job_adapters;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::WorkloadPhase;
use lockkeeper_preemption::requeue::{LifecycleStep, may_admit, next_step};
use std::sync::Arc;

/// A workload that was made this long ago and still waits is told so, whoever stands before it, in
/// milliseconds.
const PENDING_REASON_DELAY_MS: i64 = 3_000;

/// A workload.
#[derive(Debug)]
pub(super) struct TrackedWorkload {
    pub(super) key: ObjectKey,
    pub(super) object: Arc<Workload>,
    pub(super) tracker: WriteTracker,
    /// What a cycle decided, and its object does not say yet.
    pub(super) decision: Option<PendingDecision>,
    /// The job that owns it.
    pub(super) job: Option<JobKey>,
    /// Why it waits.
    pub(super) pending_reason: Option<Box<PendingReason>>,
    /// What the write that is under way tells: reason and message.
    pub(super) in_flight_event: Option<Box<(String, String)>>,
    /// Limits have changed since it was decided, and the write of that was begun: it is not repeated.
    pub(super) is_stale: bool,
}

/// Why a workload waits: a reason and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingReason {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Whether the admission of a workload counts: until it says that the quota was given back.
pub(super) fn holds_quota(workload: &Workload) -> bool {
    let status = workload.status.as_ref();
    status.is_some_and(|it| it.admission.is_some())
        && !has_status(workload, "QuotaReserved", "False")
}

impl TrackedWorkload {
    pub(super) fn holds_quota(&self) -> bool {
        holds_quota(&self.object)
    }

    /// Whether its quota is to be given back as soon as its job has stopped: it was evicted, or somebody has
    /// taken away what makes it admitted.
    pub(super) fn must_release_quota(&self) -> bool {
        let is_admitted = has_status(&self.object, "QuotaReserved", "True")
            && has_status(&self.object, "Admitted", "True");
        self.is_evicted() || !is_admitted
    }

    pub(super) fn is_evicted(&self) -> bool {
        has_status(&self.object, "Evicted", "True")
    }

    /// Whether its job is to run.
    pub(super) fn should_run(&self) -> bool {
        self.holds_quota()
            && !self.must_release_quota()
            && !has_status(&self.object, "Finished", "True")
    }
}

impl Reconciler {
    pub(super) fn observe_workload(&mut self, change: Change<Box<Workload>>) {
        self.is_cycle_due = true;
        match change {
            Change::Applied(workload) => self.upsert_workload(workload),
            Change::Deleted(name) => self.remove_workload(&name),
        }
    }

    fn upsert_workload(&mut self, mut workload: Box<Workload>) {
        self.templates.intern(&mut workload);
        let name = ObjectKey::from_metadata(&workload.metadata);
        let known = self.workloads.get_key_value(&name);
        // One text for all that remember it.
        let name = known.map_or(name, |(name, _)| name.clone());
        let version = workload.metadata.resource_version.as_deref();
        let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
        let is_same = |known: &TrackedWorkload| known.object.metadata.uid == workload.metadata.uid;
        if self.workloads.get(&name).is_some_and(|it| !is_same(it)) {
            self.remove_workload(&name);
        }
        let workload: Arc<Workload> = Arc::from(workload);
        let job = job_adapters::owner(&workload).map(|(job, _)| job);
        let is_new = !self.workloads.contains_key(&name);
        let known = self.workloads.entry(name.clone()).or_insert_with(|| {
            Box::new(TrackedWorkload {
                key: name.clone(),
                object: Arc::clone(&workload),
                tracker: WriteTracker::default(),
                decision: None,
                job: job.clone(),
                pending_reason: None,
                in_flight_event: None,
                is_stale: false,
            })
        });
        self.newest_workload_version = self.newest_workload_version.max(version);
        if !known.tracker.observe(version) && !is_new {
            return;
        }
        let before = std::mem::replace(&mut known.object, Arc::clone(&workload));
        known.job.clone_from(&job);
        // Decided on an object that is another now. A write of it that is under way will hear it.
        let flight = known
            .tracker
            .in_flight
            .and_then(|it| self.in_flight.get(&it));
        if !flight.is_some_and(|it| it.purpose.writes_decision()) {
            let order = known.decision.take();
            known.is_stale = false;
            if order.is_some() {
                self.pending_decisions = self.pending_decisions.saturating_sub(1);
            }
            let is_admission = matches!(order, Some(PendingDecision::Admit(_)));
            if is_admission || known.tracker.version >= known.tracker.min_version {
                self.revert_admission(&name);
            }
        }
        // What cannot be read is told where it waits.
        let _ = self.objects.set_workload(Arc::clone(&workload));
        if let Some(job) = job {
            self.work_queue.enqueue(ObjectRef::Job(job));
        }
        self.enqueue_queues_of(&before);
        self.enqueue_queues_of(&workload);
        self.work_queue.enqueue(ObjectRef::Workload(name));
    }

    fn remove_workload(&mut self, name: &ObjectKey) {
        self.objects.remove_workload(name.key());
        let Some(known) = self.workloads.remove(name) else {
            return;
        };
        if known.decision.is_some() {
            self.pending_decisions = self.pending_decisions.saturating_sub(1);
        }
        self.enqueue_queues_of(&known.object);
        if let Some(job) = known.job {
            if let Some(job) = self.jobs.get_mut(&job) {
                job.workload_created_at = None;
            }
            self.work_queue.enqueue(ObjectRef::Job(job));
        }
    }

    /// What a write has come to. Who was admitted in vain waits again; who was to go stays where its
    /// object says.
    pub(super) fn handle_workload_write_result(
        &mut self,
        name: &ObjectKey,
        what: WritePurpose,
        outcome: &WriteResult,
    ) {
        let Some(known) = self.workloads.get_mut(name) else {
            return;
        };
        if matches!(what, WritePurpose::PendingReason)
            && matches!(outcome, WriteResult::Rejected(_))
        {
            known.pending_reason = None;
        }
        // Its quota is for others while it is not tried again.
        let put_off_s = known.tracker.hold_until_s(what, outcome);
        let is_of_order = what.writes_decision();
        let was_stale = known.is_stale;
        let (is_over, is_undone) = match outcome {
            // The watch shows it, or has. A write of something else shows that what was begun before was not
            // done.
            WriteResult::Done(_) | WriteResult::DryRun => {
                let is_over = is_of_order || was_stale;
                let is_other = was_stale && !is_of_order;
                let is_shown = known.tracker.is_settled() && (is_over || known.decision.is_none());
                (is_over, is_other || is_shown)
            }
            // It may have been done: an admission stands until it is known. Who is outrun after that may have
            // outrun himself.
            WriteResult::Failed(_) => {
                let is_over =
                    was_stale && matches!(known.decision, Some(PendingDecision::Preempt(_)));
                (is_over, is_over)
            }
            WriteResult::Conflict
                if known.tracker.outcome_unknown
                    && matches!(known.decision, Some(PendingDecision::Admit(_))) =>
            {
                (false, false)
            }
            // Whatever was decided, it was on an object that is another now.
            WriteResult::Conflict | WriteResult::AlreadyExists | WriteResult::NotFound => {
                (true, true)
            }
            WriteResult::Rejected(_) => (is_of_order, is_of_order),
        };
        if is_over {
            known.is_stale = false;
            if known.decision.take().is_some() {
                self.pending_decisions = self.pending_decisions.saturating_sub(1);
            }
        }
        if is_undone {
            let seen = Arc::clone(&known.object);
            self.revert_admission(name);
            if let Some(until_s) = put_off_s {
                self.objects.hold_until(name.key(), until_s);
            }
            let _ = self.objects.set_workload(seen);
        }
        let Some(known) = self.workloads.get(name) else {
            return;
        };
        let job = known.job.clone();
        if what == WritePurpose::Admit
            && matches!(outcome, WriteResult::Done(_) | WriteResult::DryRun)
        {
            self.count_admission(name);
        }
        match outcome {
            WriteResult::Done(_) => self.record_eviction(name, what),
            WriteResult::Rejected(why) => self.record_rejected_workload_write(name, what, why),
            _ => {}
        }
        if let Some(job) = job {
            self.work_queue.enqueue(ObjectRef::Job(job));
        }
        self.is_cycle_due = true;
    }

    /// What was decided under other limits is decided anew. A write that is under way is a race that the
    /// limits have lost; if nobody knows whether it was done, it is not repeated.
    pub(super) fn drop_stale_decisions(&mut self) {
        if self.pending_decisions == 0 {
            return;
        }
        let mut dropped = Vec::new();
        for (name, known) in &mut self.workloads {
            if known.decision.is_none() {
                continue;
            }
            if known.tracker.in_flight.is_some() || known.tracker.outcome_unknown {
                known.is_stale = true;
            } else if let Some(order) = known.decision.take() {
                dropped.push((name.clone(), order, Arc::clone(&known.object)));
            }
        }
        self.pending_decisions = self.pending_decisions.saturating_sub(dropped.len());
        self.revert_decisions(dropped);
    }

    /// What was decided counts no more. An admission before that was written and is not seen yet does.
    pub(super) fn revert_decisions(
        &mut self,
        dropped: impl IntoIterator<Item = (ObjectKey, PendingDecision, Arc<Workload>)>,
    ) {
        for (name, order, seen) in dropped {
            if matches!(order, PendingDecision::Admit(_)) {
                self.revert_admission(&name);
            }
            let _ = self.objects.set_workload(seen);
        }
    }

    /// Its admission is not to be: it waits again, and its queue says so.
    pub(super) fn revert_admission(&mut self, name: &ObjectKey) {
        if !self.objects.is_assumed(name.key()) {
            return;
        }
        let state = self.objects.state();
        let queue = state.workload(name.key());
        let queue = queue.and_then(|id| state.queue_of(id));
        if let Some(queue) = queue {
            let queue = state.node_name(queue).to_owned();
            self.work_queue.enqueue(ObjectRef::ClusterQueue(queue));
        }
        self.objects.revert_admission(name.key());
    }

    /// No decision counts any more that is not written.
    pub(super) fn drop_decisions(&mut self) {
        self.pending_decisions = 0;
        let mut dropped = Vec::new();
        for (name, known) in &mut self.workloads {
            known.is_stale = false;
            if let Some(order) = known.decision.take() {
                dropped.push((name.clone(), order, Arc::clone(&known.object)));
            }
        }
        self.revert_decisions(dropped);
    }

    pub(super) fn enqueue_workloads_of(&mut self, queue: &ObjectKey) {
        let there = self
            .objects
            .workloads_in_local_queue(queue.namespace(), queue.name());
        for workload in there {
            let name = ObjectKey::from_metadata(&workload.metadata);
            self.work_queue.enqueue(ObjectRef::Workload(name));
        }
    }

    pub(super) fn enqueue_without_priority(&mut self) {
        for (name, known) in &self.workloads {
            let status = known.object.status.as_ref();
            if status.is_none_or(|it| it.priority.is_none()) {
                self.work_queue.enqueue(ObjectRef::Workload(name.clone()));
            }
        }
    }

    /// What a workload has to write. The order is that of urgency: the first that applies.
    pub(super) fn plan_workload(&self, name: &ObjectKey, now_ms: i64) -> Plan {
        let Some(known) = self.workloads.get(name) else {
            return Plan::NOTHING;
        };
        let workload = &*known.object;
        if workload.metadata.deletion_timestamp.is_some()
            || has_status(workload, "Finished", "True")
        {
            return Plan::NOTHING;
        }
        if self.is_orphan(name, known) {
            return Plan::write(WritePurpose::DeleteWorkload);
        }
        let job = known.job.as_ref().and_then(|it| self.jobs.get(it));
        if job.is_some_and(|it| it.view.result.is_some()) {
            return Plan::write(WritePurpose::Finish);
        }
        let (step, wait_ms) = self.requeue_step(known, now_ms);
        if let Some(what) = step {
            return Plan::write(what);
        }
        let mut plan = Plan {
            purpose: None,
            replan_at_ms: wait_ms,
        };
        plan.purpose = self.plan_transition(known, job, now_ms);
        if plan.purpose.is_none() {
            let rest = self.plan_follow_up(known, job.map(|it| &*it.view), now_ms);
            plan.purpose = rest.purpose;
            plan.replan_at_ms = plan.replan_at_ms.into_iter().chain(rest.replan_at_ms).min();
        }
        plan
    }

    /// The next step of the life that does not depend on decisions, and in how long to ask again.
    fn requeue_step(
        &self,
        known: &TrackedWorkload,
        now_ms: i64,
    ) -> (Option<WritePurpose>, Option<i64>) {
        let workload = &*known.object;
        let standing = self.objects.lifecycle_state(workload);
        let step = next_step(&self.settings.requeue, &standing, now_ms, self.jitter());
        let what = match step {
            LifecycleStep::Idle => None,
            LifecycleStep::Wait(pause) => {
                let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
                return (None, Some(now_ms.saturating_add(pause.max(1))));
            }
            LifecycleStep::SetRequeueState(_)
            | LifecycleStep::ClearRequeueState
            | LifecycleStep::Requeue(_) => Some(WritePurpose::Requeue),
            LifecycleStep::SetDeactivationTarget(_) | LifecycleStep::Deactivate => {
                Some(WritePurpose::Deactivate)
            }
            LifecycleStep::Evict(_) => Some(WritePurpose::Evict),
        };
        (what, None)
    }

    /// What decisions and its job ask for.
    fn plan_transition(
        &self,
        known: &TrackedWorkload,
        job: Option<&TrackedJob>,
        now_ms: i64,
    ) -> Option<WritePurpose> {
        let holds = known.holds_quota();
        if holds && known.must_release_quota() {
            return self.is_stopped(known, job).then_some(WritePurpose::Release);
        }
        match &known.decision {
            // It says nothing that was not so, and shows whether the admission was written.
            Some(PendingDecision::Admit(_)) if !holds && known.is_stale => {
                return Some(WritePurpose::PendingReason);
            }
            Some(PendingDecision::Admit(_))
                if job.is_some_and(|it| !can_start(&it.view, known)) =>
            {
                return None;
            }
            Some(PendingDecision::Preempt(_)) if holds => return Some(WritePurpose::Evict),
            Some(PendingDecision::Admit(_)) if !holds => return Some(WritePurpose::Admit),
            _ => {}
        }
        if !holds {
            return None;
        }
        if job.is_some_and(|it| !it.view.is_deleted && exceeds_admission(&it.view, known).is_some())
        {
            return Some(WritePurpose::Evict);
        }
        if execution_deadline_ms(known).is_some_and(|at_ms| at_ms <= now_ms)
            && !has_status(&known.object, "DeactivationTarget", "True")
        {
            return Some(WritePurpose::Deactivate);
        }
        let job = &*job?.view;
        if job.is_stopped() && !job.is_deleted && !can_start(job, known) {
            // What was admitted is not what its job is now: it is made anew.
            return Some(WritePurpose::DeleteWorkload);
        }
        let was_ready = has_status(&known.object, "PodsReady", "True");
        let is_started = !job.is_suspended;
        (is_started && job.is_ready != was_ready).then_some(WritePurpose::PodsReady)
    }

    /// What can wait: it follows its job, and people are told.
    fn plan_follow_up(
        &self,
        known: &TrackedWorkload,
        job: Option<&job_adapters::JobView>,
        now_ms: i64,
    ) -> Plan {
        if known.holds_quota() {
            let ends = execution_deadline_ms(known);
            return ends.map_or(Plan::NOTHING, Plan::at);
        }
        if let Some(job) = job
            && job.is_stopped()
            && !job.is_deleted
            && !matches_job(known, job)
        {
            // Classes are immutable: it is made anew.
            return Plan::write(if has_same_priority_classes(known, job) {
                WritePurpose::UpdateWorkload
            } else {
                WritePurpose::DeleteWorkload
            });
        }
        let created = known.object.metadata.creation_timestamp.as_ref();
        let created_ms = created.map_or(0, |it| epoch_seconds(it).saturating_mul(1000));
        let told_ms = created_ms.saturating_add(PENDING_REASON_DELAY_MS);
        if known.pending_reason.is_none() && told_ms > now_ms && self.is_in_queue(known) {
            return Plan::at(told_ms);
        }
        let is_told = self.is_reported(known);
        if is_told {
            Plan::NOTHING
        } else {
            Plan::write(WritePurpose::PendingReason)
        }
    }

    /// Whether nothing of it runs any more, so that its quota is free.
    fn is_stopped(&self, known: &TrackedWorkload, job: Option<&TrackedJob>) -> bool {
        let owners = known.object.metadata.owner_references.iter().flatten();
        let has_owner = owners.into_iter().any(|it| it.controller == Some(true));
        match (&known.job, job) {
            // Nobody runs it but who made it, and he sees the condition.
            (None, _) => !has_owner,
            (Some(name), None) => self.is_listed(Kind::Job(name.kind)),
            // A start of it may be on its way, or have come through unheard.
            (Some(_), Some(job)) => {
                job.view.is_stopped() && job.tracker.is_settled() && !job.tracker.outcome_unknown
            }
        }
    }

    /// Whether its job is gone, or has another workload.
    fn is_orphan(&self, name: &ObjectKey, known: &TrackedWorkload) -> bool {
        let Some((job, uid)) = job_adapters::owner(&known.object) else {
            return false;
        };
        if !self.has_job_kind(job.kind) || !self.is_listed(Kind::Job(job.kind)) {
            return false;
        }
        match self.jobs.get(&job) {
            None => true,
            Some(it) => it.view.uid != uid || it.view.workload_name(job.kind) != *name,
        }
    }

    /// Whether the core has it in a queue.
    fn is_in_queue(&self, known: &TrackedWorkload) -> bool {
        let place = self.objects.phase(known.key.key());
        !matches!(place, Some(Err(_) | Ok(WorkloadPhase::NotQueued(_))))
    }

    /// Whether `blockAdmission` keeps everybody waiting.
    pub(super) fn is_blocked(&self) -> bool {
        let settings = &self.settings.requeue;
        if !(settings.is_enabled && settings.block_admission) {
            return false;
        }
        let holders = self.workloads.values().filter(|it| it.holds_quota());
        let standings: Vec<_> = holders
            .map(|it| self.objects.lifecycle_state(&it.object))
            .collect();
        !may_admit(settings, &standings)
    }
}

/// When it has run for as long as it may.
fn execution_deadline_ms(known: &TrackedWorkload) -> Option<i64> {
    let most_s = i64::from(known.object.spec.maximum_execution_time_seconds?);
    let conditions = known.object.status.as_ref()?.conditions.as_slice();
    let admitted = find(conditions, "Admitted").filter(|it| it.status == "True")?;
    let end_s = epoch_seconds(&admitted.last_transition_time).saturating_add(most_s);
    Some(end_s.saturating_mul(1000))
}
