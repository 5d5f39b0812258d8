//! The objects as the watches show them, with the decisions that are not written yet.

use super::counters::Eviction;
use super::declared_job_kind::DeclaredJobKinds;
use super::kind_lists::KindLists;
use super::output::ObjectRef;
use super::pending_decision::PendingDecision;
use super::pod_groups::index::PodGroups;
use super::pod_groups::pod_group_policy::PodGroupPolicies;
use super::queue_store::QueueStore;
use super::status::conditions::{NOMINATED, find, has_status};
use super::template_interner::TemplateInterner;
use super::template_texts::TemplateTexts;
use super::write_tracker::WriteTracker;
use crate::job_adapters::{
    JobAdapter, JobKinds, JobView, POD, POD_GROUP, group_of_workload, group_template_text,
    watched_kind,
};
use crate::key::{JobKey, Kind, ObjectKey};
use lockkeeper_api::Workload;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a workload is pending: reason and message of `QuotaReserved=False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingReason {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What a successful write of a status is recorded as.
#[derive(Clone, Debug)]
pub(super) struct SuccessRecord {
    /// The reason of the event.
    pub(super) reason: String,
    /// The message of the event.
    pub(super) message: String,
    /// The eviction that metrics count.
    pub(super) eviction: Option<Eviction>,
}

/// A workload with the state of its writes.
#[derive(Debug)]
pub(super) struct TrackedWorkload {
    pub(super) key: ObjectKey,
    pub(super) object: Arc<Workload>,
    pub(super) tracker: WriteTracker,
    /// Set and removed only through [`Model`], which lists the decisions.
    decision: Option<PendingDecision>,
    /// The job that owns it according to its owner reference.
    pub(super) job: Option<JobKey>,
    /// It was deleted while its job runs: its quota stays in use until the job has stopped.
    pub(super) is_deleted: bool,
    /// Since when it has had no job that it belongs to while it holds quota, in milliseconds since 1970.
    pub(super) orphaned_since_ms: Option<i64>,
    /// The last result of a search for the pods of a job that is gone.
    pub(super) gone_job: Option<GoneJob>,
    /// Its quota was not released within the bound after its eviction.
    is_stuck: bool,
    /// Boxed, as are the other fields that few workloads have: there may be tens of thousands.
    pub(super) pending_reason: Option<Box<PendingReason>>,
    /// What to record if the in-flight write succeeds.
    pub(super) in_flight_record: Option<Box<SuccessRecord>>,
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
            is_deleted: false,
            orphaned_since_ms: None,
            gone_job: None,
            is_stuck: false,
            pending_reason: None,
            in_flight_record: None,
            is_stale: false,
        }
    }

    pub(super) const fn decision(&self) -> Option<&PendingDecision> {
        self.decision.as_ref()
    }

    pub(super) fn holds_quota(&self) -> bool {
        holds_quota(&self.object)
    }

    /// Whether the API server may have an admission that the watch has not shown yet.
    pub(super) fn may_be_admitted(&self) -> bool {
        !self.tracker.is_settled() || self.tracker.outcome_unknown
    }

    /// Whether its quota is released as soon as its job has stopped: it was evicted, or another client has
    /// removed a condition of its admission.
    pub(super) fn must_release_quota(&self) -> bool {
        let is_admitted = has_status(&self.object, "QuotaReserved", "True")
            && has_status(&self.object, "Admitted", "True");
        self.is_evicted() || !(is_admitted || self.is_nominated())
    }

    /// Whether it has quota and waits until its victims are gone from its nominated nodes.
    pub(super) fn is_nominated(&self) -> bool {
        is_nominated(&self.object)
    }

    pub(super) fn is_evicted(&self) -> bool {
        has_status(&self.object, "Evicted", "True")
    }

    /// Whether its job should run.
    pub(super) fn should_run(&self) -> bool {
        self.holds_quota()
            && !self.must_release_quota()
            && !self.is_nominated()
            && !has_status(&self.object, "Finished", "True")
    }

    /// Whether its owner reference has the uid of this job.
    pub(super) fn is_owned_by(&self, key: &JobKey, uid: &str) -> bool {
        self.job.as_ref() == Some(key) && self.owner_uid() == Some(uid)
    }

    /// The uid in the owner reference to its job; of the workload of a group, that of its label.
    pub(super) fn owner_uid(&self) -> Option<&str> {
        let owners = self.object.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|it| it.controller == Some(true));
        let group = || group_of_workload(&self.object).map(|(_, uid)| uid);
        owners.next().map(|it| it.uid.as_str()).or_else(group)
    }

    pub(super) const fn is_stuck(&self) -> bool {
        self.is_stuck
    }
}

/// The pods of a job that does not exist any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct GoneJob {
    pub(super) read_at_ms: i64,
    pub(super) has_pods: bool,
}

/// Whether the admission of a workload counts: until its status shows that the quota was released.
pub(super) fn holds_quota(workload: &Workload) -> bool {
    let status = workload.status.as_ref();
    status.is_some_and(|it| it.admission.is_some())
        && !has_status(workload, "QuotaReserved", "False")
}

/// Whether a workload has quota and waits until its victims are gone from its nominated nodes.
pub(super) fn is_nominated(workload: &Workload) -> bool {
    let status = workload.status.as_ref();
    let conditions = status.map(|it| it.conditions.as_slice());
    let admitted = find(conditions.unwrap_or_default(), "Admitted");
    holds_quota(workload)
        && !has_status(workload, "Evicted", "True")
        && has_status(workload, "QuotaReserved", "True")
        && status.is_some_and(|it| it.nominated_placement.is_some())
        && admitted.is_some_and(|it| it.status == "False" && it.reason == NOMINATED)
}

/// How the state of a job is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobSource {
    /// The watch shows it.
    Watch,
    /// It has left the watch: it was deleted, or it has lost its label. Its workload still holds quota.
    Unread,
    /// It has left the watch, and was read at this time, in milliseconds since 1970.
    Read(i64),
    /// The watch shows it. It starts and stops with the declared job that has created it.
    Covered,
}

/// A job with the state of its writes.
#[derive(Debug)]
pub(super) struct TrackedJob {
    pub(super) view: Box<JobView>,
    pub(super) tracker: WriteTracker,
    pub(super) source: JobSource,
    /// Since when there may be a start that the controller of the job has not acknowledged, in milliseconds since
    /// 1970; it begins again when the job is suspended. There may be pods that the status does not count.
    pub(super) unconfirmed_since_ms: Option<i64>,
    /// The time of the suspension that its controller showed during that start. The same time acknowledges no later
    /// suspension.
    pub(super) suspended_before_start_s: Option<i64>,
    /// The resource version at which its workload was created, until the watch has shown it.
    pub(super) workload_created_at: Option<u64>,
}

impl TrackedJob {
    pub(super) fn new(view: Box<JobView>) -> Self {
        Self {
            view,
            tracker: WriteTracker::default(),
            source: JobSource::Watch,
            unconfirmed_since_ms: None,
            suspended_before_start_s: None,
            workload_created_at: None,
        }
    }

    /// Replaces the view, and records whether a start may be unacknowledged.
    pub(super) fn set_view(&mut self, view: Box<JobView>, is_first: bool, now_ms: i64) {
        let was_suspended = self.view.is_suspended || is_first;
        self.unconfirmed_since_ms = if view.is_suspended {
            match self.unconfirmed_since_ms {
                // From now on its controller may acknowledge nothing but the stop.
                Some(_) if !was_suspended => Some(now_ms),
                None if is_first && !view.is_unchanged => Some(now_ms),
                before => before,
            }
        } else if view.is_start_unconfirmed {
            self.suspended_before_start_s = view.suspended_at_s;
            let before = self.unconfirmed_since_ms.filter(|_| !was_suspended);
            before.or(Some(now_ms))
        } else {
            None
        };
        self.view = view;
    }

    /// Records that a start was written, or may have been.
    pub(super) fn record_start(&mut self, now_ms: i64) {
        // A view that shows the job as running has already been considered.
        if self.view.is_suspended {
            self.unconfirmed_since_ms = Some(now_ms);
        }
    }
}

/// The objects as the watches show them.
#[derive(Debug)]
pub(super) struct Model {
    /// Boxed: B-tree nodes are half empty when filled in order, so large values waste memory.
    pub(super) workloads: BTreeMap<ObjectKey, Box<TrackedWorkload>>,
    pub(super) jobs: BTreeMap<JobKey, TrackedJob>,
    /// The jobs by the names of their workloads: a name includes a digest of the uid, and cannot be changed.
    job_by_workload: BTreeMap<ObjectKey, JobKey>,
    /// The jobs by the job that they name as their parent.
    claims: BTreeMap<JobKey, BTreeSet<JobKey>>,
    pub(super) pod_groups: PodGroups,
    pub(super) pod_group_policies: PodGroupPolicies,
    pub(super) queues: QueueStore,
    pub(super) templates: TemplateInterner,
    /// The templates of the jobs as their users wrote them.
    pub(super) template_texts: TemplateTexts,
    /// The newest resource version of any workload.
    pub(super) newest_workload_version: u64,
    /// The lists of the watched kinds.
    pub(super) lists: KindLists,
    /// The kinds of jobs.
    pub(super) job_kinds: JobKinds,
    /// The `JobKind` objects.
    pub(super) declared_kinds: DeclaredJobKinds,
    /// The workloads with a decision that is not written yet.
    decided: BTreeSet<ObjectKey>,
    stuck_workloads: usize,
}

impl Model {
    pub(super) fn new(optional_kinds: Vec<Kind>, template_bytes_max: usize) -> Self {
        Self {
            workloads: BTreeMap::new(),
            jobs: BTreeMap::new(),
            job_by_workload: BTreeMap::new(),
            claims: BTreeMap::new(),
            pod_groups: PodGroups::default(),
            pod_group_policies: PodGroupPolicies::new(),
            queues: QueueStore::default(),
            templates: TemplateInterner::default(),
            template_texts: TemplateTexts::new(template_bytes_max),
            newest_workload_version: 0,
            lists: KindLists::new(optional_kinds),
            job_kinds: JobKinds::default(),
            declared_kinds: DeclaredJobKinds::default(),
            decided: BTreeSet::new(),
            stuck_workloads: 0,
        }
    }

    /// The job with the name and the uid of a workload's owner reference.
    pub(super) fn job_of(&self, workload: &TrackedWorkload) -> Option<&TrackedJob> {
        let job = self.jobs.get(workload.job.as_ref()?);
        job.filter(|it| workload.owner_uid() == Some(it.view.uid.as_str()))
    }

    /// The job that a workload was created for, whatever its owner reference is now.
    pub(super) fn job_by_workload(&self, key: &ObjectKey) -> Option<&JobKey> {
        self.job_by_workload.get(key)
    }

    /// The workload that a job owns.
    pub(super) fn workload_of(&self, key: &JobKey, job: &JobView) -> Option<&TrackedWorkload> {
        let workload = self.workloads.get(&job.workload_name(key.kind))?;
        let (owner, uid) = job.workload_owner(key);
        let is_own = !workload.is_deleted && workload.is_owned_by(&owner, &uid);
        is_own.then_some(workload)
    }

    /// Whether the job is one that a job in the watch has created, so that the workload of that job has its pods.
    pub(super) fn is_covered_by_parent(&self, kind_of_job: usize, job: &JobView) -> bool {
        let Some((key, uid)) = &job.parent else {
            return false;
        };
        let parent = self.jobs.get(key);
        let parent = parent.filter(|it| it.source == JobSource::Watch && it.view.uid == *uid);
        let kind = self.job_kinds.get(key.kind);
        let own = self.job_kinds.get(kind_of_job).map(JobAdapter::resource);
        parent
            .zip(kind)
            .zip(own)
            .is_some_and(|((parent, kind), own)| kind.covers(&parent.view, &own, job))
    }

    /// Adds a job, or replaces the one with its name.
    pub(super) fn insert_job(&mut self, key: JobKey, job: TrackedJob) {
        self.remove_job(&key);
        if let Some(claim) = &job.view.group {
            self.pod_groups.set_group(&key.name, Some(&claim.group));
        } else {
            let workload = job.view.workload_name(key.kind);
            self.job_by_workload.insert(workload, key.clone());
        }
        let claim = job.view.parent.as_ref().map(|(parent, _)| parent.clone());
        self.set_claim(&key, [None, claim]);
        self.jobs.insert(key, job);
    }

    /// Records which job a job names as its parent, before and now.
    pub(super) fn set_claim(&mut self, key: &JobKey, [before, now]: [Option<JobKey>; 2]) {
        if before == now {
            return;
        }
        if let Some(parent) = before
            && let Some(children) = self.claims.get_mut(&parent)
        {
            children.remove(key);
            if children.is_empty() {
                self.claims.remove(&parent);
            }
        }
        if let Some(parent) = now {
            self.claims.entry(parent).or_default().insert(key.clone());
        }
    }

    /// The jobs that name a job as their parent. Any user may write such an owner reference.
    pub(super) fn claimed_children(
        &self,
        parent: &JobKey,
    ) -> impl Iterator<Item = (&JobKey, &TrackedJob)> {
        let children = self.claims.get(parent).into_iter().flatten();
        children.filter_map(|key| self.jobs.get_key_value(key))
    }

    pub(super) fn remove_job(&mut self, key: &JobKey) -> Option<TrackedJob> {
        let job = self.jobs.remove(key)?;
        let claim = job.view.parent.as_ref().map(|(parent, _)| parent.clone());
        self.set_claim(key, [claim, None]);
        self.template_texts.remove(key);
        if job.view.group.is_some() {
            self.pod_groups.set_group(&key.name, None);
        } else {
            self.job_by_workload
                .remove(&job.view.workload_name(key.kind));
        }
        Some(job)
    }

    /// Whether the text of the pod templates of a job is likely to be needed. For an unlikely write the job is read again.
    pub(super) fn needs_template_text(&self, key: &JobKey) -> bool {
        if key.kind != POD {
            return true;
        }
        // A pod hardly changes after it has its workload. That of a group is created from the views of its pods.
        let job = self.jobs.get(key).map(|it| &*it.view);
        let job = job.filter(|it| it.group.is_none());
        job.is_some_and(|it| self.workload_of(key, it).is_none())
    }

    /// Removes the text of the pod templates of a job that has its workload, if it is not needed any more.
    pub(super) fn drop_unneeded_text(&mut self, key: &JobKey) {
        if !self.needs_template_text(key) {
            self.template_texts.remove(key);
        }
    }

    /// The text of the pod templates of a job, if it is kept.
    pub(super) fn template_text(&self, key: &JobKey, job: &JobView) -> Option<Cow<'_, str>> {
        if key.kind == POD_GROUP {
            return Some(Cow::Owned(group_template_text(&job.pod_sets)));
        }
        self.template_texts.get(key).map(Cow::Borrowed)
    }

    /// Whether [`Self::template_text`] has a text.
    pub(super) fn has_template_text(&self, key: &JobKey) -> bool {
        key.kind == POD_GROUP || self.template_texts.get(key).is_some()
    }

    /// The pod with this name, if it is watched.
    pub(super) fn pod(&self, name: &ObjectKey) -> Option<&TrackedJob> {
        self.jobs.get(&JobKey {
            kind: POD,
            name: name.clone(),
        })
    }

    /// The number of workloads that have not released their quota within the bound after their eviction.
    pub(super) const fn stuck_workloads(&self) -> usize {
        self.stuck_workloads
    }

    pub(super) fn set_stuck(&mut self, key: &ObjectKey, is_stuck: bool) {
        let Some(workload) = self.workloads.get_mut(key) else {
            return;
        };
        if std::mem::replace(&mut workload.is_stuck, is_stuck) != is_stuck {
            self.stuck_workloads = if is_stuck {
                self.stuck_workloads.saturating_add(1)
            } else {
                self.stuck_workloads.saturating_sub(1)
            };
        }
    }

    /// `None` for events, and for objects that do not exist.
    pub(super) fn tracker(&self, object: &ObjectRef) -> Option<&WriteTracker> {
        match object {
            ObjectRef::Workload(key) => self.workloads.get(key).map(|it| &it.tracker),
            ObjectRef::Job(key) => self.jobs.get(key).map(|it| &it.tracker),
            ObjectRef::JobKind(name) => self.declared_kinds.get(name).map(|it| &it.tracker),
            queue => self.queues.tracker(queue),
        }
    }

    pub(super) fn tracker_mut(&mut self, object: &ObjectRef) -> Option<&mut WriteTracker> {
        match object {
            ObjectRef::Workload(key) => self.workloads.get_mut(key).map(|it| &mut it.tracker),
            ObjectRef::Job(key) => self.jobs.get_mut(key).map(|it| &mut it.tracker),
            ObjectRef::JobKind(name) => self.declared_kinds.get_mut(name).map(|it| &mut it.tracker),
            queue => self.queues.tracker_mut(queue),
        }
    }

    /// Whether the cluster has a kind of jobs.
    pub(super) fn has_job_kind(&self, kind: usize) -> bool {
        kind < self.job_kinds.count() && self.lists.has_optional(Kind::Job(watched_kind(kind)))
    }

    /// The number of workloads with a decision that is not written yet.
    pub(super) fn pending_decisions(&self) -> usize {
        self.decided.len()
    }

    /// The workloads with a decision that is not written yet, with it.
    pub(super) fn decided(&self) -> impl Iterator<Item = (&ObjectKey, &PendingDecision)> {
        let decided = self.decided.iter();
        decided.filter_map(|key| Some((key, self.workloads.get(key)?.decision()?)))
    }

    /// Sets or replaces the decision about a workload, if it exists.
    pub(super) fn set_decision(&mut self, key: &ObjectKey, decision: PendingDecision) {
        if let Some(workload) = self.workloads.get_mut(key)
            && workload.decision.replace(decision).is_none()
        {
            self.decided.insert(workload.key.clone());
        }
    }

    pub(super) fn take_decision(&mut self, key: &ObjectKey) -> Option<PendingDecision> {
        let decision = self.workloads.get_mut(key)?.decision.take()?;
        self.decided.remove(key);
        Some(decision)
    }

    /// Removes a workload together with its decision.
    pub(super) fn remove_workload(&mut self, key: &ObjectKey) -> Option<Box<TrackedWorkload>> {
        self.set_stuck(key, false);
        let removed = self.workloads.remove(key)?;
        self.decided.remove(key);
        Some(removed)
    }
}
