//! Plans writes from the objects that the watches show.
//!
//! All state is derived from the objects, so that a restart at any point loses nothing. Each object has at most one write in flight, and no further write before the watch
//! has shown the result of the last one. A write carries the resource version that it was planned on; a write
//! that conflicts is planned again.
//!
//! Quota is charged when an admission is decided, and released when the API server has confirmed the release,
//! so that the sum of the admissions stored at the API server never exceeds the limits either.
//!
//! The flow: [`observe`] updates the [`state`] and enqueues changed objects; [`planner`] plans their next
//! writes; [`scheduling`] runs cycles and records their decisions; [`dispatch`] builds the most urgent writes.

mod adopted_workload;
mod adoption;
mod adoption_holds;
mod backoff;
mod counters;
mod cycle_state;
mod decisions;
mod declared_job_kind;
mod dispatch;
mod event_batch;
mod event_recorder;
mod in_flight;
mod input;
mod job_stop;
mod job_sync;
mod job_writes;
mod journal;
mod kind_lists;
mod model;
mod observe;
mod output;
mod pending_decision;
mod placement;
mod plan;
mod planner;
mod pod_groups;
mod preemption_traits;
mod queue_store;
mod random;
mod rate_limit;
mod scheduling;
mod settings;
mod soft_eviction;
mod state;
mod status;
mod template_interner;
mod template_texts;
mod usage_stats;
mod work_queue;
mod workload_owner;
mod workload_removal;
mod write_tracker;

pub use adopted_workload::{
    AdoptionState, adoption_admission_patch, adoption_label_patch, adoption_manifest,
    adoption_request_patch, adoption_state, manifest_of_job,
};
pub use counters::{Counters, Eviction};
pub use declared_job_kind::{DeclaredJobKind, DefinitionCheck};
pub use event_batch::EventBatch;
pub use input::{Change, Input};

pub(crate) use adoption::needs_quota as adoption_needs_quota;
pub(crate) use adoption_holds::AdoptionHolds;
pub use output::{
    JobRead, ObjectRef, Output, WriteId, WriteOp, WritePurpose, WriteRequest, WriteResult,
};
pub(crate) use queue_store::inactive_message;
pub use settings::Settings;
pub(crate) use status::pending_reason::namespace_mismatch;
pub(crate) use template_interner::TemplateInterner;
pub use usage_stats::QuotaUsage;

use self::cycle_state::SCHEDULING_PAUSE_MS;
use self::journal::{begin_journal, take_batches};
use self::placement::nominations::{advance_nominations, next_deadline_ms, next_plans_ms};
use self::placement::retries::retry_waiting;
use crate::job_adapters::JobKinds;
use lockkeeper_cluster_state::ClusterState;
use lockkeeper_preemption::DampingView;
use scheduling::is_admission_blocked;
use state::ReconcilerState;
use std::collections::BTreeMap;

/// The most cycles per poll; after them writes are begun and inputs handled before it continues.
const CYCLES_MAX: u32 = 64;

/// The pause after which a pending reason without a token is tried again, in milliseconds.
const PENDING_REASON_PAUSE_MS: i64 = 100;

/// The sans-I/O controller: feed it with [`Self::handle_input`], then call [`Self::poll`].
#[derive(Debug)]
pub struct Reconciler {
    state: ReconcilerState,
}

impl Reconciler {
    /// A reconciler that has seen no objects and is not leading.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            state: ReconcilerState::new(settings),
        }
    }

    /// The objects, mapped onto the state of the preemption core.
    #[must_use]
    pub const fn objects(&self) -> &ClusterState {
        &self.state.cluster
    }

    /// The kinds of jobs: the built-in and the declared ones.
    #[must_use]
    pub const fn job_kinds(&self) -> &JobKinds {
        &self.state.model.job_kinds
    }

    /// The declared kinds that are managed.
    pub fn declared_job_kinds(&self) -> impl Iterator<Item = &DeclaredJobKind> {
        self.state.model.declared_kinds.in_effect()
    }

    /// The counters, for metrics.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        Counters {
            dropped_events: self.state.event_recorder.dropped(),
            ..self.state.counters
        }
    }

    /// How long the workloads that were admitted since the last call had been pending, in seconds.
    pub fn take_admission_waits(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.state.admission_waits_s)
    }

    /// The evictions since the last call.
    pub fn take_evictions(&mut self) -> Vec<Eviction> {
        std::mem::take(&mut self.state.evictions)
    }

    /// The events of the scheduler's state since the last call, for the decision log; none without
    /// [`Settings::has_decision_log`].
    pub fn take_event_batches(&mut self) -> Vec<EventBatch> {
        take_batches(&mut self.state)
    }

    /// Begins the events again with all objects, as soon as no decision is pending. Cycles wait for that.
    pub fn restart_events(&mut self) {
        self.state.journal.is_due = self.state.settings.has_decision_log && self.state.is_leading;
    }

    /// The number of pending workloads by ClusterQueue and reason. The ClusterQueue is empty if there is none. Costs all
    /// workloads.
    #[must_use]
    pub fn unadmitted_workloads(&self) -> BTreeMap<(&str, &'static str), usize> {
        usage_stats::unadmitted_workloads(&self.state)
    }

    /// The usage and the nominal quota of each ClusterQueue, flavor and resource.
    #[must_use]
    pub fn quota_usage(&self) -> Vec<QuotaUsage<'_>> {
        usage_stats::quota_usage(&self.state)
    }

    /// Whether a watch has shown this version of an object, a later one, or its deletion.
    #[must_use]
    pub fn has_observed(&self, object: &ObjectRef, version: u64) -> bool {
        let tracker = self.state.tracker(object);
        tracker.is_none_or(|it| it.version >= version)
    }

    /// The number of in-flight writes.
    #[must_use]
    pub fn in_flight_writes(&self) -> usize {
        self.state.in_flight.len()
    }

    /// The number of objects to plan now or later, and of planned writes. Zero when nothing is due, however many objects
    /// have come and gone.
    #[must_use]
    pub fn queued_objects(&self) -> usize {
        self.state.work_queue.len()
    }

    /// The workloads that have not released their quota within the bound after their eviction.
    #[must_use]
    pub const fn stuck_evictions(&self) -> usize {
        self.state.model.stuck_workloads()
    }

    /// Whether a ClusterQueue places workloads on nodes, so that [`Kind::NODES`](crate::Kind::NODES) must be watched. It
    /// stays true.
    #[must_use]
    pub const fn needs_nodes(&self) -> bool {
        self.state.placement.is_some()
    }

    /// Whether the initial lists of all kinds are complete.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.state.model.lists.is_synced()
    }

    /// Handles one input. Nothing is written before the next [`Self::poll`].
    pub fn handle_input(&mut self, now_ms: i64, input: Input) {
        self.state.set_now(now_ms);
        self.state.cycle.reset_limits();
        observe::handle_input(&mut self.state, now_ms, input);
    }

    /// The writes to begin now, and when to poll again. `now_ms` is in milliseconds since 1970.
    pub fn poll(&mut self, now_ms: i64) -> Output {
        self.poll_while(now_ms, || true)
    }

    /// Like [`Self::poll`]; runs another cycle only while `continues` returns true. The caller limits the time of a
    /// poll with it, since the reconciler has no clock.
    pub fn poll_while(&mut self, now_ms: i64, mut continues: impl FnMut() -> bool) -> Output {
        let state = &mut self.state;
        state.set_now(now_ms);
        if !state.is_leading {
            state.work_queue.forget_objects();
            return Output::default();
        }
        // Before the lists are complete, usage and jobs are missing: decisions would exceed quota. So would those of a
        // new leader whose watches are behind the writes of the former one.
        if !state.model.lists.is_synced() || !state.model.lists.is_up_to_date() {
            return Output::default();
        }
        state.work_queue.advance_timers(now_ms);
        pod_groups::refresh::refresh_changed(state, now_ms);
        state.event_recorder.flush_summaries(&state.model.queues);
        state.enqueue_events();
        dispatch::plan_dirty(state, now_ms);
        retry_waiting(state, now_ms);
        let mut cycles = 0;
        let waits_for_journal = begin_journal(state);
        let is_paused = waits_for_journal || now_ms < state.cycle.next_at_ms(now_ms);
        let mut is_interrupted = false;
        while !is_paused && scheduling::can_schedule(state) && cycles < CYCLES_MAX {
            if cycles > 0 && !continues() {
                is_interrupted = true;
                break;
            }
            scheduling::run_cycle(state, now_ms);
            dispatch::plan_dirty(state, now_ms);
            cycles = cycles.saturating_add(1);
        }
        // After CYCLES_MAX cycles, or the time of the caller, there may be more work: the next poll continues without
        // a pause.
        if !is_interrupted && (1..CYCLES_MAX).contains(&cycles) {
            state.cycle.pause_from(now_ms);
        }
        advance_nominations(state, now_ms);
        dispatch::plan_dirty(state, now_ms);
        let writes = dispatch::dispatch(state, now_ms);
        let next_cycle_at_ms =
            scheduling::can_schedule(state).then(|| state.cycle.next_at_ms(now_ms));
        let wake_at_ms = next_cycle_at_ms
            .into_iter()
            .chain(self.wake_at(now_ms))
            .min();
        // The decisions that the journal waits for end with inputs.
        let earliest_ms = now_ms.saturating_add(SCHEDULING_PAUSE_MS);
        Output {
            writes,
            wake_at_ms: wake_at_ms.map(|it| {
                if waits_for_journal {
                    it.max(earliest_ms)
                } else {
                    it
                }
            }),
        }
    }

    /// When to poll again if no input arrives before.
    fn wake_at(&self, now_ms: i64) -> Option<i64> {
        let state = &self.state;
        let core_due_s = DampingView::new(state.cluster.state()).next_wake_s();
        // `i64::MAX`: the backoff ends with an event, not at a time.
        // While admission is blocked no cycle takes the workload; an input ends that, too.
        let is_waiting_for_time = |at_s: &i64| *at_s < i64::MAX && !is_admission_blocked(state);
        let core_wake_ms = core_due_s.filter(is_waiting_for_time).map(|at_s| {
            let at_ms = at_s.saturating_mul(1000);
            at_ms.max(state.cycle.next_at_ms(now_ms))
        });
        let has_pending_reason =
            state.work_queue.highest_priority() == Some(WritePurpose::PendingReason.priority());
        let pending_reason_ms =
            has_pending_reason.then(|| now_ms.saturating_add(PENDING_REASON_PAUSE_MS));
        let placement = state.placement.as_ref();
        let all = [
            placement.and_then(|it| it.waiting.wake_at_ms(now_ms)),
            next_deadline_ms(state),
            next_plans_ms(state),
            state.work_queue.next_timer(),
            core_wake_ms,
            pending_reason_ms,
            state.event_recorder.summaries_due_ms(),
        ];
        all.into_iter().flatten().min()
    }
}
