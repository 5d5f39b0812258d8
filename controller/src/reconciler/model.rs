//! The objects as the watches show them, with the decisions that are not written yet.

use super::output::ObjectRef;
use super::queue_store::QueueStore;
use super::status::conditions::has_status;
use super::template_interner::TemplateInterner;
use super::write_tracker::WriteTracker;
use crate::job_adapters::{JobView, KINDS};
use crate::key::{JobKey, Kind, ObjectKey};
use lockkeeper_api::Workload;
use lockkeeper_api::workload::Admission;
use lockkeeper_preemption::PreemptionReason;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A decision of a cycle that the object does not show yet.
#[derive(Clone, Debug)]
pub(super) enum PendingDecision {
    Admit(Box<AdmissionDecision>),
    /// The workload is a victim.
    Preempt(Box<PreemptionDecision>),
}

/// The admission of a workload, and the message of its condition.
#[derive(Clone, Debug)]
pub(super) struct AdmissionDecision {
    pub(super) admission: Admission,
    pub(super) message: String,
}

/// The preemptor that needs a victim's quota, and the reason.
#[derive(Clone, Debug)]
pub(super) struct PreemptionDecision {
    pub(super) reason: PreemptionReason,
    pub(super) preemptor: ObjectKey,
    pub(super) preemptor_uid: String,
    pub(super) job_uid: String,
    /// Paths in the quota tree: of the preemptor's queue and of the victim's.
    pub(super) queue_paths: [String; 2],
}

/// Why a workload is pending: reason and message of `QuotaReserved=False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingReason {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// A workload with the state of its writes.
#[derive(Debug)]
pub(super) struct TrackedWorkload {
    pub(super) key: ObjectKey,
    pub(super) object: Arc<Workload>,
    pub(super) tracker: WriteTracker,
    /// Set and removed only through [`Model`], which counts the decisions.
    decision: Option<PendingDecision>,
    /// The job that owns it.
    pub(super) job: Option<JobKey>,
    /// Boxed, as are the other fields that few workloads have: there may be tens of thousands.
    pub(super) pending_reason: Option<Box<PendingReason>>,
    /// Reason and message of the event to record if the in-flight write succeeds.
    pub(super) in_flight_event: Option<Box<(String, String)>>,
    /// Limits have changed since the decision, while its write was in flight: the write is not repeated.
    pub(super) is_stale: bool,
}

impl TrackedWorkload {
    pub(super) fn new(key: ObjectKey, object: Arc<Workload>, job: Option<JobKey>) -> Self {
        Self {
            key,
            object,
            tracker: WriteTracker::default(),
            decision: None,
            job,
            pending_reason: None,
            in_flight_event: None,
            is_stale: false,
        }
    }

    pub(super) const fn decision(&self) -> Option<&PendingDecision> {
        self.decision.as_ref()
    }

    pub(super) fn holds_quota(&self) -> bool {
        holds_quota(&self.object)
    }

    /// Whether its quota is released as soon as its job has stopped: it was evicted, or another client has
    /// removed a condition of its admission.
    pub(super) fn must_release_quota(&self) -> bool {
        let is_admitted = has_status(&self.object, "QuotaReserved", "True")
            && has_status(&self.object, "Admitted", "True");
        self.is_evicted() || !is_admitted
    }

    pub(super) fn is_evicted(&self) -> bool {
        has_status(&self.object, "Evicted", "True")
    }

    /// Whether its job should run.
    pub(super) fn should_run(&self) -> bool {
        self.holds_quota()
            && !self.must_release_quota()
            && !has_status(&self.object, "Finished", "True")
    }

    /// Whether any controller owns it, one of an unknown kind included.
    pub(super) fn has_controller(&self) -> bool {
        let owners = self.object.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|it| it.controller == Some(true))
    }
}

/// Whether the admission of a workload counts: until its status shows that the quota was released.
pub(super) fn holds_quota(workload: &Workload) -> bool {
    let status = workload.status.as_ref();
    status.is_some_and(|it| it.admission.is_some())
        && !has_status(workload, "QuotaReserved", "False")
}

/// A job with the state of its writes.
#[derive(Debug)]
pub(super) struct TrackedJob {
    pub(super) view: Box<JobView>,
    pub(super) tracker: WriteTracker,
    /// The resource version at which its workload was created, until the watch has shown it.
    pub(super) workload_created_at: Option<u64>,
}

impl TrackedJob {
    pub(super) fn new(view: Box<JobView>) -> Self {
        Self {
            view,
            tracker: WriteTracker::default(),
            workload_created_at: None,
        }
    }
}

/// The objects as the watches show them.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Boxed: B-tree nodes are half empty when filled in order, so large values waste memory.
    pub(super) workloads: BTreeMap<ObjectKey, Box<TrackedWorkload>>,
    pub(super) jobs: BTreeMap<JobKey, TrackedJob>,
    pub(super) queues: QueueStore,
    pub(super) templates: TemplateInterner,
    /// The newest resource version of any workload.
    pub(super) newest_workload_version: u64,
    /// Kinds with a complete initial list; the watch task holds partial lists.
    listed_kinds: BTreeSet<Kind>,
    /// The kinds of jobs that the cluster has.
    job_kinds: Vec<usize>,
    pending_decisions: usize,
}

impl Model {
    pub(super) fn new(job_kinds: Vec<usize>) -> Self {
        Self {
            job_kinds,
            ..Self::default()
        }
    }

    pub(super) fn job_of(&self, workload: &TrackedWorkload) -> Option<&TrackedJob> {
        self.jobs.get(workload.job.as_ref()?)
    }

    /// `None` for events, and for objects that do not exist.
    pub(super) fn tracker(&self, object: &ObjectRef) -> Option<&WriteTracker> {
        match object {
            ObjectRef::Workload(key) => self.workloads.get(key).map(|it| &it.tracker),
            ObjectRef::Job(key) => self.jobs.get(key).map(|it| &it.tracker),
            queue => self.queues.tracker(queue),
        }
    }

    pub(super) fn tracker_mut(&mut self, object: &ObjectRef) -> Option<&mut WriteTracker> {
        match object {
            ObjectRef::Workload(key) => self.workloads.get_mut(key).map(|it| &mut it.tracker),
            ObjectRef::Job(key) => self.jobs.get_mut(key).map(|it| &mut it.tracker),
            queue => self.queues.tracker_mut(queue),
        }
    }

    pub(super) fn is_listed(&self, kind: Kind) -> bool {
        self.listed_kinds.contains(&kind)
    }

    pub(super) fn set_listed(&mut self, kind: Kind) {
        self.listed_kinds.insert(kind);
    }

    /// Whether the initial lists of all kinds are complete.
    pub(super) fn is_synced(&self) -> bool {
        let jobs = self.job_kinds.iter().map(|kind| Kind::Job(*kind));
        let mut all = Kind::FIXED.into_iter().chain(jobs);
        all.all(|kind| self.is_listed(kind))
    }

    pub(super) fn add_job_kind(&mut self, kind: usize) {
        if !self.job_kinds.contains(&kind) {
            self.job_kinds.push(kind);
        }
    }

    pub(super) fn has_job_kind(&self, kind: usize) -> bool {
        kind < KINDS.len() && self.job_kinds.contains(&kind)
    }

    /// The number of workloads with a decision that is not written yet.
    pub(super) const fn pending_decisions(&self) -> usize {
        self.pending_decisions
    }

    /// Sets or replaces the decision about a workload, if it exists.
    pub(super) fn set_decision(&mut self, key: &ObjectKey, decision: PendingDecision) {
        if let Some(workload) = self.workloads.get_mut(key)
            && workload.decision.replace(decision).is_none()
        {
            self.pending_decisions = self.pending_decisions.saturating_add(1);
        }
    }

    pub(super) fn take_decision(&mut self, key: &ObjectKey) -> Option<PendingDecision> {
        let decision = self.workloads.get_mut(key)?.decision.take()?;
        self.pending_decisions = self.pending_decisions.saturating_sub(1);
        Some(decision)
    }

    /// Removes a workload together with its decision.
    pub(super) fn remove_workload(&mut self, key: &ObjectKey) -> Option<Box<TrackedWorkload>> {
        let removed = self.workloads.remove(key)?;
        if removed.decision.is_some() {
            self.pending_decisions = self.pending_decisions.saturating_sub(1);
        }
        Some(removed)
    }
}
