//! The workloads as they are seen, and what they have to write.

use super::conditions::{find, is, second};
use super::input::{Change, Name};
use super::job::{KnownJob, may_start, outgrown};
use super::life::{follows, has_same_classes};
use super::order::Order;
use super::output::{Outcome, Target, What};
use super::{JobName, Kind, Plan, Reconciler, Track};
use crate::jobs;
use lockkeeper_api::Workload;
use lockkeeper_preemption::requeue::{Step, may_admit, next_step};
use lockkeeper_snapshot::objects::Place;
use std::sync::Arc;

/// A workload that was made this long ago and still waits is told so, whoever stands before it, in
/// milliseconds.
const PATIENCE_MS: i64 = 3_000;

/// A workload.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: Name,
    pub(super) seen: Arc<Workload>,
    pub(super) track: Track,
    /// What a cycle decided, and its object does not say yet.
    pub(super) order: Option<Order>,
    /// The job that owns it.
    pub(super) job: Option<JobName>,
    /// Why it waits.
    pub(super) notice: Option<Box<Notice>>,
    /// What the write that is under way tells: reason and message.
    pub(super) last: Option<Box<(String, String)>>,
    /// Limits have changed since it was decided, and the write of that was begun: it is not repeated.
    pub(super) is_stale: bool,
}

/// Why a workload waits: a reason and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Whether the admission of a workload counts: until it says that the quota was given back.
pub(super) fn holds_quota(workload: &Workload) -> bool {
    let status = workload.status.as_ref();
    status.is_some_and(|it| it.admission.is_some()) && !is(workload, "QuotaReserved", "False")
}

impl Known {
    pub(super) fn holds_quota(&self) -> bool {
        holds_quota(&self.seen)
    }

    /// Whether its quota is to be given back as soon as its job has stopped: it was evicted, or somebody has
    /// taken away what makes it admitted.
    pub(super) fn is_to_go(&self) -> bool {
        let is_admitted =
            is(&self.seen, "QuotaReserved", "True") && is(&self.seen, "Admitted", "True");
        self.is_evicted() || !is_admitted
    }

    pub(super) fn is_evicted(&self) -> bool {
        is(&self.seen, "Evicted", "True")
    }

    /// Whether its job is to run.
    pub(super) fn runs(&self) -> bool {
        self.holds_quota() && !self.is_to_go() && !is(&self.seen, "Finished", "True")
    }
}

impl Reconciler {
    pub(super) fn take_workload(&mut self, change: Change<Box<Workload>>) {
        self.has_moved = true;
        match change {
            Change::Seen(workload) => self.see_workload(workload),
            Change::Gone(name) => self.lose_workload(&name),
        }
    }

    fn see_workload(&mut self, mut workload: Box<Workload>) {
        self.templates.share(&mut workload);
        let name = Name::of(&workload.metadata);
        let known = self.workloads.get_key_value(&name);
        // One text for all that remember it.
        let name = known.map_or(name, |(name, _)| name.clone());
        let version = workload.metadata.resource_version.as_deref();
        let version = version.and_then(|it| it.parse().ok()).unwrap_or_default();
        let is_same = |known: &Known| known.seen.metadata.uid == workload.metadata.uid;
        if self.workloads.get(&name).is_some_and(|it| !is_same(it)) {
            self.lose_workload(&name);
        }
        let workload: Arc<Workload> = Arc::from(workload);
        let job = jobs::owner(&workload).map(|(job, _)| job);
        let is_new = !self.workloads.contains_key(&name);
        let known = self.workloads.entry(name.clone()).or_insert_with(|| {
            Box::new(Known {
                name: name.clone(),
                seen: Arc::clone(&workload),
                track: Track::default(),
                order: None,
                job: job.clone(),
                notice: None,
                last: None,
                is_stale: false,
            })
        });
        self.workloads_at = self.workloads_at.max(version);
        if !known.track.see(version) && !is_new {
            return;
        }
        let before = std::mem::replace(&mut known.seen, Arc::clone(&workload));
        known.job.clone_from(&job);
        // Decided on an object that is another now. A write of it that is under way will hear it.
        let flight = known.track.flight.and_then(|it| self.flights.get(&it));
        if !flight.is_some_and(|it| it.what.is_of_order()) {
            let order = known.order.take();
            known.is_stale = false;
            if order.is_some() {
                self.orders = self.orders.saturating_sub(1);
            }
            let is_admission = matches!(order, Some(Order::Admit(_)));
            if is_admission || known.track.version >= known.track.awaits {
                self.give_up(&name);
            }
        }
        // What cannot be read is told where it waits.
        let _ = self.objects.set_workload(Arc::clone(&workload));
        if let Some(job) = job {
            self.schedule.mark(Target::Job(job));
        }
        self.mark_queues_of(&before);
        self.mark_queues_of(&workload);
        self.schedule.mark(Target::Workload(name));
    }

    fn lose_workload(&mut self, name: &Name) {
        self.objects.remove_workload(name.key());
        let Some(known) = self.workloads.remove(name) else {
            return;
        };
        if known.order.is_some() {
            self.orders = self.orders.saturating_sub(1);
        }
        self.mark_queues_of(&known.seen);
        if let Some(job) = known.job {
            if let Some(job) = self.jobs.get_mut(&job) {
                job.created_at = None;
            }
            self.schedule.mark(Target::Job(job));
        }
    }

    /// What a write has come to. Who was admitted in vain waits again; who was to go stays where its
    /// object says.
    pub(super) fn workload_answered(&mut self, name: &Name, what: What, outcome: &Outcome) {
        let Some(known) = self.workloads.get_mut(name) else {
            return;
        };
        if matches!(what, What::Notice) && matches!(outcome, Outcome::Refused(_)) {
            known.notice = None;
        }
        // Its quota is for others while it is not tried again.
        let put_off_s = known.track.put_off_s(what, outcome);
        let is_of_order = what.is_of_order();
        let was_stale = known.is_stale;
        let (is_over, is_undone) = match outcome {
            // The watch shows it, or has. A write of something else shows that what was begun before was not
            // done.
            Outcome::Done(_) | Outcome::DryRun => {
                let is_over = is_of_order || was_stale;
                let is_other = was_stale && !is_of_order;
                let is_shown = known.track.is_settled() && (is_over || known.order.is_none());
                (is_over, is_other || is_shown)
            }
            // It may have been done: an admission stands until it is known. Who is outrun after that may have
            // outrun himself.
            Outcome::Failed(_) => {
                let is_over = was_stale && matches!(known.order, Some(Order::Preempt(_)));
                (is_over, is_over)
            }
            Outcome::Conflict
                if known.track.is_in_doubt && matches!(known.order, Some(Order::Admit(_))) =>
            {
                (false, false)
            }
            // Whatever was decided, it was on an object that is another now.
            Outcome::Conflict | Outcome::Exists | Outcome::Absent => (true, true),
            Outcome::Refused(_) => (is_of_order, is_of_order),
        };
        if is_over {
            known.is_stale = false;
            if known.order.take().is_some() {
                self.orders = self.orders.saturating_sub(1);
            }
        }
        if is_undone {
            let seen = Arc::clone(&known.seen);
            self.give_up(name);
            if let Some(until_s) = put_off_s {
                self.objects.put_off(name.key(), until_s);
            }
            let _ = self.objects.set_workload(seen);
        }
        let Some(known) = self.workloads.get(name) else {
            return;
        };
        let job = known.job.clone();
        if what == What::Admit && matches!(outcome, Outcome::Done(_) | Outcome::DryRun) {
            self.count_admission(name);
        }
        match outcome {
            Outcome::Done(_) => self.tell(name, what),
            Outcome::Refused(why) => self.warn_workload(name, what, why),
            _ => {}
        }
        if let Some(job) = job {
            self.schedule.mark(Target::Job(job));
        }
        self.has_moved = true;
    }

    /// What was decided under other limits is decided anew. A write that is under way is a race that the
    /// limits have lost; if nobody knows whether it was done, it is not repeated.
    pub(super) fn drop_stale_orders(&mut self) {
        if self.orders == 0 {
            return;
        }
        let mut dropped = Vec::new();
        for (name, known) in &mut self.workloads {
            if known.order.is_none() {
                continue;
            }
            if known.track.flight.is_some() || known.track.is_in_doubt {
                known.is_stale = true;
            } else if let Some(order) = known.order.take() {
                dropped.push((name.clone(), order, Arc::clone(&known.seen)));
            }
        }
        self.orders = self.orders.saturating_sub(dropped.len());
        self.undo(dropped);
    }

    /// What was decided counts no more. An admission before that was written and is not seen yet does.
    pub(super) fn undo(&mut self, dropped: impl IntoIterator<Item = (Name, Order, Arc<Workload>)>) {
        for (name, order, seen) in dropped {
            if matches!(order, Order::Admit(_)) {
                self.give_up(&name);
            }
            let _ = self.objects.set_workload(seen);
        }
    }

    /// Its admission is not to be: it waits again, and its queue says so.
    pub(super) fn give_up(&mut self, name: &Name) {
        if !self.objects.is_assumed(name.key()) {
            return;
        }
        let state = self.objects.state();
        let queue = state.workload(name.key());
        let queue = queue.and_then(|id| state.queue_of(id));
        if let Some(queue) = queue {
            let queue = state.node_name(queue).to_owned();
            self.schedule.mark(Target::ClusterQueue(queue));
        }
        self.objects.give_up(name.key());
    }

    /// No decision counts any more that is not written.
    pub(super) fn drop_orders(&mut self) {
        self.orders = 0;
        let mut dropped = Vec::new();
        for (name, known) in &mut self.workloads {
            known.is_stale = false;
            if let Some(order) = known.order.take() {
                dropped.push((name.clone(), order, Arc::clone(&known.seen)));
            }
        }
        self.undo(dropped);
    }

    pub(super) fn mark_workloads_of(&mut self, queue: &Name) {
        let there = self.objects.workloads_of(queue.namespace(), queue.name());
        for workload in there {
            let name = Name::of(&workload.metadata);
            self.schedule.mark(Target::Workload(name));
        }
    }

    pub(super) fn mark_unranked(&mut self) {
        for (name, known) in &self.workloads {
            let status = known.seen.status.as_ref();
            if status.is_none_or(|it| it.priority.is_none()) {
                self.schedule.mark(Target::Workload(name.clone()));
            }
        }
    }

    /// What a workload has to write. The order is that of urgency: the first that applies.
    pub(super) fn plan_workload(&self, name: &Name, now_ms: i64) -> Plan {
        let Some(known) = self.workloads.get(name) else {
            return Plan::REST;
        };
        let workload = &*known.seen;
        if workload.metadata.deletion_timestamp.is_some() || is(workload, "Finished", "True") {
            return Plan::REST;
        }
        if self.is_orphan(name, known) {
            return Plan::write(What::DeleteWorkload);
        }
        let job = known.job.as_ref().and_then(|it| self.jobs.get(it));
        if job.is_some_and(|it| it.seen.ended.is_some()) {
            return Plan::write(What::Finish);
        }
        let (step, wait_ms) = self.step(known, now_ms);
        if let Some(what) = step {
            return Plan::write(what);
        }
        let mut plan = Plan {
            what: None,
            look_at_ms: wait_ms,
        };
        plan.what = self.life_of(known, job, now_ms);
        if plan.what.is_none() {
            let rest = self.rest_of(known, job.map(|it| &*it.seen), now_ms);
            plan.what = rest.what;
            plan.look_at_ms = plan.look_at_ms.into_iter().chain(rest.look_at_ms).min();
        }
        plan
    }

    /// The next step of the life that does not depend on decisions, and in how long to ask again.
    fn step(&self, known: &Known, now_ms: i64) -> (Option<What>, Option<i64>) {
        let workload = &*known.seen;
        let standing = self.objects.standing(workload);
        let step = next_step(&self.settings.requeue, &standing, now_ms, self.jitter());
        let what = match step {
            Step::Rest => None,
            Step::Wait(pause) => {
                let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
                return (None, Some(now_ms.saturating_add(pause.max(1))));
            }
            Step::Record(_) | Step::Forget | Step::Requeue(_) => Some(What::Requeue),
            Step::Target(_) | Step::Deactivate => Some(What::Deactivate),
            Step::Evict(_) => Some(What::Evict),
        };
        (what, None)
    }

    /// What decisions and its job ask for.
    fn life_of(&self, known: &Known, job: Option<&KnownJob>, now_ms: i64) -> Option<What> {
        let holds = known.holds_quota();
        if holds && known.is_to_go() {
            return self.is_stopped(known, job).then_some(What::Release);
        }
        match &known.order {
            // It says nothing that was not so, and shows whether the admission was written.
            Some(Order::Admit(_)) if !holds && known.is_stale => return Some(What::Notice),
            Some(Order::Admit(_)) if job.is_some_and(|it| !may_start(&it.seen, known)) => {
                return None;
            }
            Some(Order::Preempt(_)) if holds => return Some(What::Evict),
            Some(Order::Admit(_)) if !holds => return Some(What::Admit),
            _ => {}
        }
        if !holds {
            return None;
        }
        if job.is_some_and(|it| !it.seen.is_deleted && outgrown(&it.seen, known).is_some()) {
            return Some(What::Evict);
        }
        if execution_ends_ms(known).is_some_and(|at_ms| at_ms <= now_ms)
            && !is(&known.seen, "DeactivationTarget", "True")
        {
            return Some(What::Deactivate);
        }
        let job = &*job?.seen;
        if job.is_stopped() && !job.is_deleted && !may_start(job, known) {
            // What was admitted is not what its job is now: it is made anew.
            return Some(What::DeleteWorkload);
        }
        let was_ready = is(&known.seen, "PodsReady", "True");
        let is_started = !job.is_suspended;
        (is_started && job.is_ready != was_ready).then_some(What::PodsReady)
    }

    /// What can wait: it follows its job, and people are told.
    fn rest_of(&self, known: &Known, job: Option<&jobs::Seen>, now_ms: i64) -> Plan {
        if known.holds_quota() {
            let ends = execution_ends_ms(known);
            return ends.map_or(Plan::REST, Plan::at);
        }
        if let Some(job) = job
            && job.is_stopped()
            && !job.is_deleted
            && !follows(known, job)
        {
            // Classes are immutable: it is made anew.
            return Plan::write(if has_same_classes(known, job) {
                What::UpdateWorkload
            } else {
                What::DeleteWorkload
            });
        }
        let created = known.seen.metadata.creation_timestamp.as_ref();
        let created_ms = created.map_or(0, |it| second(it).saturating_mul(1000));
        let told_ms = created_ms.saturating_add(PATIENCE_MS);
        if known.notice.is_none() && told_ms > now_ms && self.is_in_queue(known) {
            return Plan::at(told_ms);
        }
        let is_told = self.is_told(known);
        if is_told {
            Plan::REST
        } else {
            Plan::write(What::Notice)
        }
    }

    /// Whether nothing of it runs any more, so that its quota is free.
    fn is_stopped(&self, known: &Known, job: Option<&KnownJob>) -> bool {
        let owners = known.seen.metadata.owner_references.iter().flatten();
        let has_owner = owners.into_iter().any(|it| it.controller == Some(true));
        match (&known.job, job) {
            // Nobody runs it but who made it, and he sees the condition.
            (None, _) => !has_owner,
            (Some(name), None) => self.is_listed(Kind::Job(name.kind)),
            // A start of it may be on its way, or have come through unheard.
            (Some(_), Some(job)) => {
                job.seen.is_stopped() && job.track.is_settled() && !job.track.is_in_doubt
            }
        }
    }

    /// Whether its job is gone, or has another workload.
    fn is_orphan(&self, name: &Name, known: &Known) -> bool {
        let Some((job, uid)) = jobs::owner(&known.seen) else {
            return false;
        };
        if !self.knows_job_kind(job.kind) || !self.is_listed(Kind::Job(job.kind)) {
            return false;
        }
        match self.jobs.get(&job) {
            None => true,
            Some(it) => it.seen.uid != uid || it.seen.workload_name(job.kind) != *name,
        }
    }

    /// Whether the core has it in a queue.
    fn is_in_queue(&self, known: &Known) -> bool {
        let place = self.objects.place(known.name.key());
        !matches!(place, Some(Err(_) | Ok(Place::Outside(_))))
    }

    /// Whether `blockAdmission` keeps everybody waiting.
    pub(super) fn is_blocked(&self) -> bool {
        let settings = &self.settings.requeue;
        if !(settings.is_enabled && settings.block_admission) {
            return false;
        }
        let holders = self.workloads.values().filter(|it| it.holds_quota());
        let standings: Vec<_> = holders.map(|it| self.objects.standing(&it.seen)).collect();
        !may_admit(settings, &standings)
    }
}

/// When it has run for as long as it may.
fn execution_ends_ms(known: &Known) -> Option<i64> {
    let most_s = i64::from(known.seen.spec.maximum_execution_time_seconds?);
    let conditions = known.seen.status.as_ref()?.conditions.as_slice();
    let admitted = find(conditions, "Admitted").filter(|it| it.status == "True")?;
    let end_s = second(&admitted.last_transition_time).saturating_add(most_s);
    Some(end_s.saturating_mul(1000))
}
