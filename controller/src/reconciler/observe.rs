//! Inputs: what the watches see, and what became of writes.

use super::input::{Change, Input, Kind, ObjectKey};
use super::output::{ObjectRef, WriteId, WritePurpose, WriteResult};
use super::queues::is_same_object;
use super::{InFlightWrite, Reconciler};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::{Cohort, LocalQueue};
use std::sync::Arc;

impl Reconciler {
    /// Takes one input.
    pub fn handle_input(&mut self, now_ms: i64, input: Input) {
        self.objects.set_now(now_ms);
        self.event_recorder.set_now(now_ms, &self.settings.instance);
        self.searched_again.clear();
        self.withdrawn_admissions = 0;
        match input {
            Input::ClusterQueue(change) => self.observe_cluster_queue(change),
            Input::Cohort(change) => self.observe_cohort(change),
            Input::LocalQueue(change) => self.observe_local_queue(change),
            Input::ResourceFlavor(change) => self.observe_flavor(change),
            Input::PriorityClass(change) => self.observe_priority_class(change),
            Input::Namespace(change) => self.observe_namespace(change),
            Input::Workload(change) => self.observe_workload(change),
            Input::Job(kind, change) => self.observe_job(kind, change),
            Input::Unreadable(kind, name, error) => self.observe_unreadable(kind, &name, &error),
            Input::Listed(kind) => self.observe_listed(kind),
            Input::WriteFinished(ticket, outcome) => {
                self.observe_write_result(ticket, &outcome, now_ms)
            }
            Input::JobKindAvailable(kind) => self.observe_job_kind(kind),
            Input::Leadership(is_leading) => self.observe_leadership(is_leading),
        }
    }

    fn observe_job_kind(&mut self, kind: usize) {
        if !self.settings.job_kinds.contains(&kind) {
            self.settings.job_kinds.push(kind);
        }
    }

    fn observe_cohort(&mut self, change: Change<Box<Cohort>>) {
        match change {
            Change::Applied(cohort) => {
                let name = ObjectKey::from_metadata(&cohort.metadata).name().to_owned();
                let before = self.queues.cohorts.get(&name);
                if before.is_some_and(|it| {
                    it.object.spec == cohort.spec
                        && is_same_object(&it.object.metadata, &cohort.metadata)
                }) {
                    let refused = before.and_then(|it| it.rejection.clone());
                    self.queues.upsert_cohort(Arc::from(cohort), refused);
                    self.work_queue.enqueue(ObjectRef::Cohort(name));
                    return;
                }
                let refused = self.objects.set_cohort(&cohort).err();
                self.queues.upsert_cohort(Arc::from(cohort), refused);
                self.work_queue.enqueue(ObjectRef::Cohort(name));
            }
            Change::Deleted(name) => {
                self.objects.remove_cohort(name.name());
                self.queues
                    .remove(&ObjectRef::Cohort(name.name().to_owned()));
            }
        }
        self.is_cycle_due = true;
        self.drop_stale_decisions();
        // A circle that begins or ends concerns all of them.
        self.enqueue_all_queues();
    }

    fn observe_local_queue(&mut self, change: Change<Box<LocalQueue>>) {
        let name = match change {
            Change::Applied(queue) => {
                let name = ObjectKey::from_metadata(&queue.metadata);
                let before = self.queues.local_queues.get(&name);
                if before.is_some_and(|it| it.object.spec == queue.spec) {
                    self.queues.upsert_local_queue(Arc::from(queue));
                    self.work_queue.enqueue(ObjectRef::LocalQueue(name));
                    return;
                }
                self.objects.set_local_queue(&queue);
                self.queues.upsert_local_queue(Arc::from(queue));
                self.work_queue.enqueue(ObjectRef::LocalQueue(name.clone()));
                name
            }
            Change::Deleted(name) => {
                self.objects
                    .remove_local_queue(name.namespace(), name.name());
                self.queues.remove(&ObjectRef::LocalQueue(name.clone()));
                name
            }
        };
        self.is_cycle_due = true;
        self.drop_stale_decisions();
        self.enqueue_workloads_of(&name);
    }

    fn observe_priority_class(&mut self, change: Change<Box<PriorityClass>>) {
        self.is_cycle_due = true;
        match change {
            Change::Applied(class) => self.objects.set_priority_class(&class),
            Change::Deleted(name) => self.objects.remove_priority_class(name.name()),
        }
        self.enqueue_without_priority();
    }

    fn observe_namespace(&mut self, change: Change<Box<Namespace>>) {
        self.is_cycle_due = true;
        match change {
            Change::Applied(namespace) => {
                let name = ObjectKey::from_metadata(&namespace.metadata)
                    .name()
                    .to_owned();
                let labels = namespace.metadata.labels.unwrap_or_default();
                self.objects.set_namespace(&name, labels);
            }
            Change::Deleted(name) => self.objects.remove_namespace(name.name()),
        }
    }

    /// What was known of it no longer holds, and what it is now nobody can say: it stays where it was, and
    /// its reason is told where it can be.
    fn observe_unreadable(&mut self, kind: Kind, name: &ObjectKey, error: &str) {
        match kind {
            Kind::Workload => {
                let known = self.workloads.get_mut(name);
                if known.is_some_and(|it| it.decision.take().is_some()) {
                    self.pending_decisions = self.pending_decisions.saturating_sub(1);
                }
                self.event_recorder
                    .record_unreadable("Workload", name, error);
            }
            Kind::Job(at) => {
                let kind = crate::job_adapters::KINDS.get(at);
                let kind = kind.map_or("Job", |it| it.resource().kind);
                self.event_recorder.record_unreadable(kind, name, error);
            }
            Kind::ClusterQueue => {
                self.event_recorder
                    .record_unreadable("ClusterQueue", name, error)
            }
            Kind::Cohort => self.event_recorder.record_unreadable("Cohort", name, error),
            Kind::LocalQueue => self
                .event_recorder
                .record_unreadable("LocalQueue", name, error),
            Kind::ResourceFlavor => {
                self.event_recorder
                    .record_unreadable("ResourceFlavor", name, error)
            }
            Kind::PriorityClass | Kind::Namespace => {}
        }
        self.enqueue_events();
    }

    fn observe_listed(&mut self, kind: Kind) {
        self.is_cycle_due = true;
        self.listed_kinds.insert(kind);
        if kind == Kind::Workload {
            // What a watch that broke may have missed: a workload that was made and is gone again.
            for job in self.jobs.values_mut() {
                job.workload_created_at = None;
            }
        }
        self.enqueue_all();
    }

    fn observe_leadership(&mut self, is_leading: bool) {
        if self.is_leading == is_leading {
            return;
        }
        self.is_leading = is_leading;
        // Whoever leads meanwhile decides for himself.
        self.drop_decisions();
        self.work_queue.clear_ready();
        self.is_cycle_due = true;
        self.enqueue_all();
    }

    fn observe_write_result(&mut self, ticket: WriteId, outcome: &WriteResult, now_ms: i64) {
        let Some(flight) = self.in_flight.remove(&ticket) else {
            return;
        };
        let chance = self.next_random();
        self.adjust_concurrency(outcome);
        let is_done = matches!(outcome, WriteResult::Done(_));
        let InFlightWrite {
            object: target,
            purpose: what,
            version,
        } = flight;
        let track = self.tracker_mut(&target);
        let Some(track) = track.filter(|it| it.in_flight == Some(ticket)) else {
            // It was about an object that is another now.
            return;
        };
        let has_changed = track.version > version && what != WritePurpose::CreateWorkload;
        let outcome = match outcome {
            // It was done, or outrun: what has been seen since says which.
            WriteResult::Failed(_) if has_changed => &WriteResult::Conflict,
            outcome => outcome,
        };
        track.handle_result(what, version, outcome, now_ms, chance);
        match &target {
            ObjectRef::Workload(name) => self.handle_workload_write_result(name, what, outcome),
            ObjectRef::Job(name) => self.handle_job_write_result(name, what, outcome),
            ObjectRef::Event(number) => self.event_recorder.handle_write_result(*number, is_done),
            _ => {}
        }
        self.work_queue.enqueue(target);
        self.enqueue_events();
    }

    /// Fewer writes at once while the API server does not keep up, and one more each time it does.
    fn adjust_concurrency(&mut self, outcome: &WriteResult) {
        let most = self.settings.writes_max.max(1);
        self.concurrency_limit = match outcome {
            WriteResult::Failed(_) => (self.concurrency_limit / 2).max(1),
            _ => self.concurrency_limit.saturating_add(1).min(most),
        };
    }

    pub(super) fn enqueue_all(&mut self) {
        let workloads = self.workloads.keys().cloned().map(ObjectRef::Workload);
        let jobs = self.jobs.keys().cloned().map(ObjectRef::Job);
        for target in workloads.chain(jobs) {
            self.work_queue.enqueue(target);
        }
        self.enqueue_all_queues();
        self.enqueue_events();
    }

    pub(super) fn enqueue_events(&mut self) {
        for number in self.event_recorder.take_unqueued() {
            self.work_queue.enqueue(ObjectRef::Event(number));
        }
    }

    pub(super) fn enqueue_all_queues(&mut self) {
        for target in self.queues.object_refs() {
            self.work_queue.enqueue(target);
        }
    }
}
