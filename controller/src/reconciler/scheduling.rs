//! Cycles, and what their decisions mean for the objects.

use super::Reconciler;
use super::conditions::epoch_seconds;
use super::decision::{AdmissionDecision, PendingDecision, PreemptionDecision};
use super::input::ObjectKey;
use super::output::ObjectRef;
use super::pending_reason::pending_reason_for_entry;
use super::workload::PendingReason;
use lockkeeper_api::Workload;
use lockkeeper_cluster_state::admission;
use lockkeeper_preemption::{Decision, Entry, Mode, RequeueDestination, Victim};
use std::sync::Arc;

/// The most admissions that are taken back between two inputs.
const WITHDRAWN_MAX: u32 = 64;

impl Reconciler {
    /// Whether a cycle may find something to do, and its decisions would be written soon: what is decided
    /// late is decided better.
    pub(super) fn can_schedule(&self) -> bool {
        let room = self.settings.writes_max.saturating_mul(2).max(2);
        let is_due = self.objects.state().next_wake_s();
        let is_due = is_due.is_some_and(|at_s| at_s <= self.objects.now_ms().div_euclid(1000));
        (self.is_cycle_due || is_due)
            && self.pending_decisions < room
            && !self.is_blocked_by_pending_decision()
    }

    /// With `blockAdmission` one is admitted at a time.
    fn is_blocked_by_pending_decision(&self) -> bool {
        let settings = &self.settings.requeue;
        let is_asked = settings.is_enabled && settings.block_admission;
        is_asked && (self.pending_decisions > 0 || self.is_blocked())
    }

    /// One cycle.
    pub(super) fn run_cycle(&mut self, now_ms: i64) {
        let cycle = self.objects.next_cycle(now_ms, true);
        self.counters.cycles = self.counters.cycles.saturating_add(1);
        let settings = &self.settings.requeue;
        let is_one_only = settings.is_enabled && settings.block_admission;
        let mut has_admitted = false;
        let mut has_moved = false;
        for entry in &cycle.entries {
            // Who stepped aside makes room for the next, and a search for flavors may go on.
            has_moved |= self.continues_search(entry);
            increment(&mut self.counters.decisions, entry.decision.as_str());
            match &entry.decision {
                Decision::Admit if is_one_only && has_admitted => {
                    let name = self.entry_key(entry);
                    self.revert_admission(&name);
                }
                Decision::Admit => {
                    has_admitted |= self.decide_admission(entry, now_ms);
                    has_moved = true;
                }
                Decision::Preempt(victims) => {
                    has_moved |= self.decide_preemptions(entry, victims);
                    self.update_pending_reason(entry);
                }
                _ => self.update_pending_reason(entry),
            }
        }
        has_moved |= self.requeue_for_full_search();
        has_moved |= cycle.has_reactivated || !cycle.out_of_scope.is_empty();
        for id in &cycle.out_of_scope {
            let name = ObjectKey::from_key(self.objects.state().workload_name(*id));
            let notice = PendingReason {
                reason: "Inadmissible",
                message: "The ClusterQueue does not take workloads of this namespace \
                          (spec.namespaceSelector)"
                    .to_owned(),
            };
            self.set_pending_reason(&name, notice);
        }
        self.is_cycle_due = has_moved;
    }

    /// Whether the next cycle may find something else because of what became of an entry.
    ///
    /// Who was outrun goes on searching at the next flavor, as in Kueue. If there is nothing there, it would
    /// step aside though an earlier flavor may be free by now, and looks at all of them once more.
    fn continues_search(&mut self, entry: &Entry) -> bool {
        let (id, state) = (entry.workload, self.objects.state());
        let is_aside = matches!(entry.requeued, Some((_, RequeueDestination::Inadmissible)));
        let goes_on = state.has_untried_flavors(id);
        let has_gone_on = self.continuing_searches.remove(&id);
        if goes_on {
            self.continuing_searches.insert(id);
        }
        if is_aside && has_gone_on && self.searched_again.insert(id) {
            self.to_requeue.push(id);
        }
        is_aside || goes_on
    }

    fn requeue_for_full_search(&mut self) -> bool {
        let parked = std::mem::take(&mut self.to_requeue);
        for id in &parked {
            self.objects.state_mut().reactivate_class_of(*id);
        }
        !parked.is_empty()
    }

    fn entry_key(&self, entry: &Entry) -> ObjectKey {
        ObjectKey::from_key(self.objects.state().workload_name(entry.workload))
    }

    /// Whether there is something to write.
    fn decide_admission(&mut self, entry: &Entry, now_ms: i64) -> bool {
        let name = self.entry_key(entry);
        let state = self.objects.state();
        let admission = admission(state, entry.workload, entry.assignment());
        let (Some(admission), Some(known)) = (admission, self.workloads.get_mut(&name)) else {
            self.revert_admission(&name);
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
        let waited_s = wait_seconds(&known.object, now_ms);
        let why = format!(
            "Quota reserved in ClusterQueue {queue}, {waited_s} s after it was made{borrowed}"
        );
        if known.decision.is_none() {
            self.pending_decisions = self.pending_decisions.saturating_add(1);
        }
        known.decision = Some(PendingDecision::Admit(Box::new(AdmissionDecision {
            admission,
            message: why,
        })));
        known.pending_reason = None;
        self.work_queue.enqueue(ObjectRef::Workload(name));
        true
    }

    /// Counts an admission that is written; one that was taken back before that is none.
    pub(super) fn count_admission(&mut self, name: &ObjectKey) {
        if let Some(known) = self.workloads.get(name) {
            self.admission_waits_s
                .push(wait_seconds(&known.object, self.objects.now_ms()));
            self.counters.admitted = self.counters.admitted.saturating_add(1);
        }
    }

    /// Tells victims to go who were not told before. Whether there were any. A victim whose admission is not
    /// written yet simply goes on waiting.
    fn decide_preemptions(&mut self, entry: &Entry, victims: &[Victim]) -> bool {
        let preemptor = self.entry_key(entry);
        let from = self.objects.state_mut().path(entry.queue);
        let (preemptor_uid, job_uid) = self.workload_and_job_uids(&preemptor);
        let mut is_new = false;
        for victim in victims {
            let name = ObjectKey::from_key(self.objects.state().workload_name(victim.workload));
            if self.withdraw_admission(&name) {
                is_new = true;
                continue;
            }
            let Some(known) = self.workloads.get_mut(&name) else {
                continue;
            };
            if known.decision.is_some() || known.is_evicted() {
                continue;
            }
            let queue = self.objects.state().queue_of(victim.workload);
            let to = queue.map(|id| self.objects.state_mut().path(id));
            known.decision = Some(PendingDecision::Preempt(Box::new(PreemptionDecision {
                reason: victim.reason,
                preemptor: preemptor.clone(),
                preemptor_uid: preemptor_uid.clone(),
                job_uid: job_uid.clone(),
                queue_paths: [from.clone(), to.unwrap_or_default()],
            })));
            self.pending_decisions = self.pending_decisions.saturating_add(1);
            increment(&mut self.counters.victims, victim.reason);
            // It goes, as far as the next decision is concerned.
            self.objects.state_mut().mark_evicted(victim.workload);
            self.work_queue.enqueue(ObjectRef::Workload(name));
            is_new = true;
        }
        is_new
    }

    /// Takes an admission back that nobody was told of. So many times between two inputs: who preempt each other
    /// for ever are to wait for the API server now and then.
    fn withdraw_admission(&mut self, name: &ObjectKey) -> bool {
        let Some(known) = self.workloads.get_mut(name) else {
            return false;
        };
        let is_untold = known.tracker.in_flight.is_none() && !known.tracker.outcome_unknown;
        if !is_untold
            || !matches!(known.decision, Some(PendingDecision::Admit(_)))
            || self.withdrawn_admissions >= WITHDRAWN_MAX
        {
            return false;
        }
        self.withdrawn_admissions = self.withdrawn_admissions.saturating_add(1);
        let order = known.decision.take();
        let seen = Arc::clone(&known.object);
        self.pending_decisions = self.pending_decisions.saturating_sub(1);
        self.revert_decisions(order.map(|order| (name.clone(), order, seen)));
        self.work_queue.enqueue(ObjectRef::Workload(name.clone()));
        true
    }

    /// Its own uid and that of its job.
    fn workload_and_job_uids(&self, name: &ObjectKey) -> (String, String) {
        let Some(known) = self.workloads.get(name) else {
            return (String::new(), String::new());
        };
        let uid = known.object.metadata.uid.clone().unwrap_or_default();
        let owners = known.object.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|it| it.controller == Some(true));
        let job = owners.next().map(|it| it.uid.clone());
        (uid, job.unwrap_or_default())
    }

    fn update_pending_reason(&mut self, entry: &Entry) {
        let name = self.entry_key(entry);
        let known = self.workloads.get(&name);
        if known.is_some_and(|it| it.pending_reason.is_some())
            && !self.event_recorder.has_pending_reason_token()
        {
            return;
        }
        let notice = pending_reason_for_entry(self.objects.state(), entry);
        self.set_pending_reason(&name, notice);
    }

    fn set_pending_reason(&mut self, name: &ObjectKey, notice: PendingReason) {
        if let Some(known) = self.workloads.get_mut(name)
            && known.pending_reason.as_deref() != Some(&notice)
        {
            known.pending_reason = Some(Box::new(notice));
            self.work_queue.enqueue(ObjectRef::Workload(name.clone()));
        }
    }
}

/// One more of its kind.
fn increment<T: Copy + PartialEq>(all: &mut [(T, u64)], one: T) {
    for (_, number) in all.iter_mut().filter(|(it, _)| *it == one) {
        *number = number.saturating_add(1);
    }
}

/// Since it was made, in seconds.
fn wait_seconds(workload: &Workload, now_ms: i64) -> i64 {
    let created = workload.metadata.creation_timestamp.as_ref();
    let waited_s = created.map_or(0, |it| {
        now_ms.div_euclid(1000).saturating_sub(epoch_seconds(it))
    });
    waited_s.max(0)
}
