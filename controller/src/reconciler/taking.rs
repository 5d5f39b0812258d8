//! Inputs: what the watches see, and what became of writes.

use super::input::{Change, Input, Kind, Name};
use super::output::{Outcome, Target, Ticket, What};
use super::queues::is_same_object;
use super::{Flight, Reconciler};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use lockkeeper_api::{Cohort, LocalQueue};
use std::sync::Arc;

impl Reconciler {
    /// Takes one input.
    pub fn take(&mut self, now_ms: i64, input: Input) {
        self.objects.set_now(now_ms);
        self.news.set_now(now_ms, &self.settings.instance);
        self.looked_again.clear();
        self.withdrawn = 0;
        match input {
            Input::ClusterQueue(change) => self.take_cluster_queue(change),
            Input::Cohort(change) => self.take_cohort(change),
            Input::LocalQueue(change) => self.take_local_queue(change),
            Input::ResourceFlavor(change) => self.take_flavor(change),
            Input::PriorityClass(change) => self.take_class(change),
            Input::Namespace(change) => self.take_namespace(change),
            Input::Workload(change) => self.take_workload(change),
            Input::Job(kind, change) => self.take_job(kind, change),
            Input::Unreadable(kind, name, error) => self.take_unreadable(kind, &name, &error),
            Input::Listed(kind) => self.take_listed(kind),
            Input::Answer(ticket, outcome) => self.take_answer(ticket, &outcome, now_ms),
            Input::HasJobKind(kind) => self.take_job_kind(kind),
            Input::Lead(is_leading) => self.take_lead(is_leading),
        }
    }

    fn take_job_kind(&mut self, kind: usize) {
        if !self.settings.job_kinds.contains(&kind) {
            self.settings.job_kinds.push(kind);
        }
    }

    fn take_cohort(&mut self, change: Change<Box<Cohort>>) {
        match change {
            Change::Seen(cohort) => {
                let name = Name::of(&cohort.metadata).name().to_owned();
                let before = self.queues.cohorts.get(&name);
                if before.is_some_and(|it| {
                    it.seen.spec == cohort.spec
                        && is_same_object(&it.seen.metadata, &cohort.metadata)
                }) {
                    let refused = before.and_then(|it| it.refused.clone());
                    self.queues.see_cohort(Arc::from(cohort), refused);
                    self.schedule.mark(Target::Cohort(name));
                    return;
                }
                let refused = self.objects.set_cohort(&cohort).err();
                self.queues.see_cohort(Arc::from(cohort), refused);
                self.schedule.mark(Target::Cohort(name));
            }
            Change::Gone(name) => {
                self.objects.remove_cohort(name.name());
                self.queues.lose(&Target::Cohort(name.name().to_owned()));
            }
        }
        self.has_moved = true;
        self.drop_stale_orders();
        // A circle that begins or ends concerns all of them.
        self.mark_all_queues();
    }

    fn take_local_queue(&mut self, change: Change<Box<LocalQueue>>) {
        let name = match change {
            Change::Seen(queue) => {
                let name = Name::of(&queue.metadata);
                let before = self.queues.local_queues.get(&name);
                if before.is_some_and(|it| it.seen.spec == queue.spec) {
                    self.queues.see_local_queue(Arc::from(queue));
                    self.schedule.mark(Target::LocalQueue(name));
                    return;
                }
                self.objects.set_local_queue(&queue);
                self.queues.see_local_queue(Arc::from(queue));
                self.schedule.mark(Target::LocalQueue(name.clone()));
                name
            }
            Change::Gone(name) => {
                self.objects
                    .remove_local_queue(name.namespace(), name.name());
                self.queues.lose(&Target::LocalQueue(name.clone()));
                name
            }
        };
        self.has_moved = true;
        self.drop_stale_orders();
        self.mark_workloads_of(&name);
    }

    fn take_class(&mut self, change: Change<Box<PriorityClass>>) {
        self.has_moved = true;
        match change {
            Change::Seen(class) => self.objects.set_priority_class(&class),
            Change::Gone(name) => self.objects.remove_priority_class(name.name()),
        }
        self.mark_unranked();
    }

    fn take_namespace(&mut self, change: Change<Box<Namespace>>) {
        self.has_moved = true;
        match change {
            Change::Seen(namespace) => {
                let name = Name::of(&namespace.metadata).name().to_owned();
                let labels = namespace.metadata.labels.unwrap_or_default();
                self.objects.set_namespace(&name, labels);
            }
            Change::Gone(name) => self.objects.remove_namespace(name.name()),
        }
    }

    /// What was known of it no longer holds, and what it is now nobody can say: it stays where it was, and
    /// its reason is told where it can be.
    fn take_unreadable(&mut self, kind: Kind, name: &Name, error: &str) {
        match kind {
            Kind::Workload => {
                let known = self.workloads.get_mut(name);
                if known.is_some_and(|it| it.order.take().is_some()) {
                    self.orders = self.orders.saturating_sub(1);
                }
                self.news.warn_unreadable("Workload", name, error);
            }
            Kind::Job(at) => {
                let kind = crate::jobs::KINDS.get(at);
                let kind = kind.map_or("Job", |it| it.resource().kind);
                self.news.warn_unreadable(kind, name, error);
            }
            Kind::ClusterQueue => self.news.warn_unreadable("ClusterQueue", name, error),
            Kind::Cohort => self.news.warn_unreadable("Cohort", name, error),
            Kind::LocalQueue => self.news.warn_unreadable("LocalQueue", name, error),
            Kind::ResourceFlavor => self.news.warn_unreadable("ResourceFlavor", name, error),
            Kind::PriorityClass | Kind::Namespace => {}
        }
        self.mark_news();
    }

    fn take_listed(&mut self, kind: Kind) {
        self.has_moved = true;
        self.listed.insert(kind);
        if kind == Kind::Workload {
            // What a watch that broke may have missed: a workload that was made and is gone again.
            for job in self.jobs.values_mut() {
                job.created_at = None;
            }
        }
        self.mark_all();
    }

    fn take_lead(&mut self, is_leading: bool) {
        if self.is_leading == is_leading {
            return;
        }
        self.is_leading = is_leading;
        // Whoever leads meanwhile decides for himself.
        self.drop_orders();
        self.schedule.clear_ready();
        self.has_moved = true;
        self.mark_all();
    }

    fn take_answer(&mut self, ticket: Ticket, outcome: &Outcome, now_ms: i64) {
        let Some(flight) = self.flights.remove(&ticket) else {
            return;
        };
        let chance = self.roll();
        self.breathe(outcome);
        let is_done = matches!(outcome, Outcome::Done(_));
        let Flight {
            target,
            what,
            version,
        } = flight;
        let track = self.track_mut(&target);
        let Some(track) = track.filter(|it| it.flight == Some(ticket)) else {
            // It was about an object that is another now.
            return;
        };
        let has_changed = track.version > version && what != What::CreateWorkload;
        let outcome = match outcome {
            // It was done, or outrun: what has been seen since says which.
            Outcome::Failed(_) if has_changed => &Outcome::Conflict,
            outcome => outcome,
        };
        track.answered(what, version, outcome, now_ms, chance);
        match &target {
            Target::Workload(name) => self.workload_answered(name, what, outcome),
            Target::Job(name) => self.job_answered(name, what, outcome),
            Target::Event(number) => self.news.answered(*number, is_done),
            _ => {}
        }
        self.schedule.mark(target);
        self.mark_news();
    }

    /// Fewer writes at once while the API server does not keep up, and one more each time it does.
    fn breathe(&mut self, outcome: &Outcome) {
        let most = self.settings.writes_max.max(1);
        self.limit = match outcome {
            Outcome::Failed(_) => (self.limit / 2).max(1),
            _ => self.limit.saturating_add(1).min(most),
        };
    }

    pub(super) fn mark_all(&mut self) {
        let workloads = self.workloads.keys().cloned().map(Target::Workload);
        let jobs = self.jobs.keys().cloned().map(Target::Job);
        for target in workloads.chain(jobs) {
            self.schedule.mark(target);
        }
        self.mark_all_queues();
        self.mark_news();
    }

    pub(super) fn mark_news(&mut self) {
        for number in self.news.unmarked() {
            self.schedule.mark(Target::Event(number));
        }
    }

    pub(super) fn mark_all_queues(&mut self) {
        for target in self.queues.targets() {
            self.schedule.mark(target);
        }
    }
}
