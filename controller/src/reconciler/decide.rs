//! Cycles, and what their decisions mean for the objects.

use super::Reconciler;
use super::conditions::second;
use super::input::Name;
use super::notice::of_entry;
use super::order::{Grant, Order, Preemption};
use super::output::Target;
use super::workload::Notice;
use lockkeeper_api::Workload;
use lockkeeper_preemption::{Decision, Entry, Mode, RequeuedTo, Victim};
use lockkeeper_snapshot::objects::admission;
use std::sync::Arc;

/// The most admissions that are taken back between two inputs.
const WITHDRAWN_MAX: u32 = 64;

impl Reconciler {
    /// Whether a cycle may find something to do, and its decisions would be written soon: what is decided
    /// late is decided better.
    pub(super) fn may_decide(&self) -> bool {
        let room = self.settings.writes_max.saturating_mul(2).max(2);
        let is_due = self.objects.state().next_wake_s();
        let is_due = is_due.is_some_and(|at_s| at_s <= self.objects.now_ms().div_euclid(1000));
        (self.has_moved || is_due) && self.orders < room && !self.is_blocked_by_order()
    }

    /// With `blockAdmission` one is admitted at a time.
    fn is_blocked_by_order(&self) -> bool {
        let settings = &self.settings.requeue;
        let is_asked = settings.is_enabled && settings.block_admission;
        is_asked && (self.orders > 0 || self.is_blocked())
    }

    /// One cycle.
    pub(super) fn decide(&mut self, now_ms: i64) {
        let cycle = self.objects.next_cycle(now_ms, true);
        self.figures.cycles = self.figures.cycles.saturating_add(1);
        let settings = &self.settings.requeue;
        let is_one_only = settings.is_enabled && settings.block_admission;
        let mut has_admitted = false;
        let mut has_moved = false;
        for entry in &cycle.entries {
            // Who stepped aside makes room for the next, and a search for flavors may go on.
            has_moved |= self.goes_on(entry);
            count(&mut self.figures.decisions, entry.decision.as_str());
            match &entry.decision {
                Decision::Admit if is_one_only && has_admitted => {
                    let name = self.name_of(entry);
                    self.give_up(&name);
                }
                Decision::Admit => {
                    has_admitted |= self.order_admission(entry, now_ms);
                    has_moved = true;
                }
                Decision::Preempt(victims) => {
                    has_moved |= self.order_preemptions(entry, victims);
                    self.note(entry);
                }
                _ => self.note(entry),
            }
        }
        has_moved |= self.look_again();
        has_moved |= cycle.has_revived || !cycle.out_of_scope.is_empty();
        for id in &cycle.out_of_scope {
            let name = Name::of_key(self.objects.state().workload_name(*id));
            let notice = Notice {
                reason: "Inadmissible",
                message: "The ClusterQueue does not take workloads of this namespace \
                          (spec.namespaceSelector)"
                    .to_owned(),
            };
            self.notice(&name, notice);
        }
        self.has_moved = has_moved;
    }

    /// Whether the next cycle may find something else because of what became of an entry.
    ///
    /// Who was outrun goes on searching at the next flavor, as in Kueue. If there is nothing there, it would
    /// step aside though an earlier flavor may be free by now, and looks at all of them once more.
    fn goes_on(&mut self, entry: &Entry) -> bool {
        let (id, state) = (entry.workload, self.objects.state());
        let is_aside = matches!(entry.requeued, Some((_, RequeuedTo::Parked)));
        let goes_on = state.has_flavors_left(id);
        let has_gone_on = self.searching.remove(&id);
        if goes_on {
            self.searching.insert(id);
        }
        if is_aside && has_gone_on && self.looked_again.insert(id) {
            self.to_unpark.push(id);
        }
        is_aside || goes_on
    }

    fn look_again(&mut self) -> bool {
        let parked = std::mem::take(&mut self.to_unpark);
        for id in &parked {
            self.objects.state_mut().unpark(*id);
        }
        !parked.is_empty()
    }

    fn name_of(&self, entry: &Entry) -> Name {
        Name::of_key(self.objects.state().workload_name(entry.workload))
    }

    /// Whether there is something to write.
    fn order_admission(&mut self, entry: &Entry, now_ms: i64) -> bool {
        let name = self.name_of(entry);
        let state = self.objects.state();
        let admission = admission(state, entry.workload, entry.assignment());
        let (Some(admission), Some(known)) = (admission, self.workloads.get_mut(&name)) else {
            self.give_up(&name);
            return false;
        };
        let is_borrowed = |it: &lockkeeper_preemption::FlavorAssignment| {
            it.mode == Mode::Fit && it.borrowing_level > 0
        };
        let pod_sets = entry.assignment().pod_sets.iter();
        let mut borrowed: Vec<&str> = pod_sets
            .flat_map(|it| &it.flavors)
            .filter(|it| is_borrowed(it))
            .map(|it| state.resource_name(it.resource))
            .collect();
        borrowed.sort_unstable();
        borrowed.dedup();
        let borrowed = if borrowed.is_empty() {
            String::new()
        } else {
            format!("; borrows {}", borrowed.join(", "))
        };
        let queue = &admission.cluster_queue;
        let waited_s = waited_s(&known.seen, now_ms);
        let why = format!(
            "Quota reserved in ClusterQueue {queue}, {waited_s} s after it was made{borrowed}"
        );
        if known.order.is_none() {
            self.orders = self.orders.saturating_add(1);
        }
        known.order = Some(Order::Admit(Box::new(Grant { admission, why })));
        known.notice = None;
        self.schedule.mark(Target::Workload(name));
        true
    }

    /// Counts an admission that is written; one that was taken back before that is none.
    pub(super) fn count_admission(&mut self, name: &Name) {
        if let Some(known) = self.workloads.get(name) {
            self.waits_s
                .push(waited_s(&known.seen, self.objects.now_ms()));
            self.figures.admitted = self.figures.admitted.saturating_add(1);
        }
    }

    /// Tells victims to go who were not told before. Whether there were any. A victim whose admission is not
    /// written yet simply goes on waiting.
    fn order_preemptions(&mut self, entry: &Entry, victims: &[Victim]) -> bool {
        let preemptor = self.name_of(entry);
        let from = self.objects.state_mut().path(entry.queue);
        let (preemptor_uid, job_uid) = self.uids(&preemptor);
        let mut is_new = false;
        for victim in victims {
            let name = Name::of_key(self.objects.state().workload_name(victim.workload));
            if self.withdraw(&name) {
                is_new = true;
                continue;
            }
            let Some(known) = self.workloads.get_mut(&name) else {
                continue;
            };
            if known.order.is_some() || known.is_evicted() {
                continue;
            }
            let queue = self.objects.state().queue_of(victim.workload);
            let to = queue.map(|id| self.objects.state_mut().path(id));
            known.order = Some(Order::Preempt(Box::new(Preemption {
                reason: victim.reason,
                preemptor: preemptor.clone(),
                preemptor_uid: preemptor_uid.clone(),
                job_uid: job_uid.clone(),
                paths: [from.clone(), to.unwrap_or_default()],
            })));
            self.orders = self.orders.saturating_add(1);
            count(&mut self.figures.victims, victim.reason);
            // It goes, as far as the next decision is concerned.
            self.objects.state_mut().mark_evicted(victim.workload);
            self.schedule.mark(Target::Workload(name));
            is_new = true;
        }
        is_new
    }

    /// Takes an admission back that nobody was told of. So many times between two inputs: who preempt each other
    /// for ever are to wait for the API server now and then.
    fn withdraw(&mut self, name: &Name) -> bool {
        let Some(known) = self.workloads.get_mut(name) else {
            return false;
        };
        let is_untold = known.track.flight.is_none() && !known.track.is_in_doubt;
        if !is_untold
            || !matches!(known.order, Some(Order::Admit(_)))
            || self.withdrawn >= WITHDRAWN_MAX
        {
            return false;
        }
        self.withdrawn = self.withdrawn.saturating_add(1);
        let order = known.order.take();
        let seen = Arc::clone(&known.seen);
        self.orders = self.orders.saturating_sub(1);
        self.undo(order.map(|order| (name.clone(), order, seen)));
        self.schedule.mark(Target::Workload(name.clone()));
        true
    }

    /// Its own uid and that of its job.
    fn uids(&self, name: &Name) -> (String, String) {
        let Some(known) = self.workloads.get(name) else {
            return (String::new(), String::new());
        };
        let uid = known.seen.metadata.uid.clone().unwrap_or_default();
        let owners = known.seen.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|it| it.controller == Some(true));
        let job = owners.next().map(|it| it.uid.clone());
        (uid, job.unwrap_or_default())
    }

    fn note(&mut self, entry: &Entry) {
        let name = self.name_of(entry);
        let known = self.workloads.get(&name);
        if known.is_some_and(|it| it.notice.is_some()) && !self.news.has_notices() {
            return;
        }
        let notice = of_entry(self.objects.state(), entry);
        self.notice(&name, notice);
    }

    fn notice(&mut self, name: &Name, notice: Notice) {
        if let Some(known) = self.workloads.get_mut(name)
            && known.notice.as_deref() != Some(&notice)
        {
            known.notice = Some(Box::new(notice));
            self.schedule.mark(Target::Workload(name.clone()));
        }
    }
}

/// One more of its kind.
fn count<T: Copy + PartialEq>(all: &mut [(T, u64)], one: T) {
    for (_, number) in all.iter_mut().filter(|(it, _)| *it == one) {
        *number = number.saturating_add(1);
    }
}

/// Since it was made, in seconds.
fn waited_s(workload: &Workload, now_ms: i64) -> i64 {
    let created = workload.metadata.creation_timestamp.as_ref();
    let waited_s = created.map_or(0, |it| now_ms.div_euclid(1000).saturating_sub(second(it)));
    waited_s.max(0)
}
