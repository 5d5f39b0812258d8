//! What is to be written, from what is seen.
//!
//! Everything is decided from the objects as the watches show them: nothing that matters is remembered
//! besides, so that a restart at any point loses nothing. Each object has at most one write under way, and
//! after it nothing more until the watch has shown what came of it. A write carries the resource version
//! that it was decided on; who was outrun decides again.
//!
//! What takes quota is counted from the decision on. What gives it back is counted when the API server has
//! confirmed it, so that at the API server, too, the sum never goes above the limits.

mod backoff;
mod conditions;
mod decision;
mod event_recorder;
mod input;
mod job;
mod observe;
mod output;
mod pending_reason;
mod queue_status;
mod queues;
mod rate_limit;
mod scheduling;
mod status_throttle;
mod template_interner;
mod work_queue;
mod workload;
mod workload_status;
mod write_tracker;

pub use input::{Change, Input, JobKey, Kind, ObjectKey};
pub use output::{ObjectRef, Output, WriteId, WriteOp, WritePurpose, WriteRequest, WriteResult};

use crate::job_adapters::KINDS;
use event_recorder::EventRecorder;
use job::TrackedJob;
use lockkeeper_cluster_state::{ClusterState, Completeness};
use lockkeeper_policies::settings::Settings as RuleSettings;
use lockkeeper_preemption::requeue::{Jitter, RequeueSettings};
use lockkeeper_preemption::{Decision, Options, PreemptionReason, WorkloadId};
use queues::Queues;
use std::collections::{BTreeMap, BTreeSet};
use template_interner::TemplateInterner;
use work_queue::WorkQueue;
use workload::TrackedWorkload;
use write_tracker::WriteTracker;

/// The most cycles in one go; then writes are begun and inputs taken before it goes on.
const CYCLES_MAX: u32 = 64;

/// Between two rounds of decisions, in milliseconds: what comes in meanwhile is decided on together, and who
/// comes after a rest is decided on at once.
const SCHEDULING_PAUSE_MS: i64 = 20;

/// Between two looks at whether a workload may be told why it waits, in milliseconds.
const PENDING_REASON_PAUSE_MS: i64 = 100;

/// What holds for all.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How is decided.
    pub options: Options,
    /// `waitForPodsReady`.
    pub requeue: RequeueSettings,
    /// The rules whose breach is told of objects that are there already.
    pub rules: RuleSettings,
    /// Writes under way at once.
    pub writes_max: usize,
    /// The least time between two status writes of one queue, in milliseconds.
    pub status_interval_ms: i64,
    /// How many waiting workloads are told per second why they wait.
    pub pending_reason_writes_per_second: u32,
    /// How many evictions are told per second in an event of their own; the rest are told in sum.
    pub eviction_events_per_second: u32,
    /// The kinds of jobs that the cluster has, by their positions.
    pub job_kinds: Vec<usize>,
    /// What chance is made of.
    pub seed: u64,
    /// Who writes, in events: the name of this process.
    pub instance: String,
}

/// The sans-I/O controller. Feed it with [`Self::take`], then ask [`Self::next`].
#[derive(Debug)]
pub struct Reconciler {
    settings: Settings,
    objects: ClusterState,
    /// In boxes: half of a map that is filled in order stays empty.
    workloads: BTreeMap<ObjectKey, Box<TrackedWorkload>>,
    templates: TemplateInterner,
    jobs: BTreeMap<JobKey, TrackedJob>,
    queues: Queues,
    event_recorder: EventRecorder,
    work_queue: WorkQueue,
    in_flight: BTreeMap<WriteId, InFlightWrite>,
    /// What of a listing that is not complete was seen, by kind, is kept by whoever lists.
    listed_kinds: BTreeSet<Kind>,
    /// The newest version of a workload that was seen.
    newest_workload_version: u64,
    is_leading: bool,
    /// Whether a cycle may find something to do.
    is_cycle_due: bool,
    /// Whose search for flavors goes on in the next cycle.
    continuing_searches: BTreeSet<WorkloadId>,
    /// Who has looked at all flavors once more since the last input.
    searched_again: BTreeSet<WorkloadId>,
    /// How many admissions were taken back since the last input.
    withdrawn_admissions: u32,
    /// Who is to look at all flavors once more.
    to_requeue: Vec<WorkloadId>,
    /// Decisions that are not written yet.
    pending_decisions: usize,
    /// Nothing is decided before this time, in milliseconds.
    next_cycle_at_ms: i64,
    /// How many writes may be under way now; fewer while the API server is short of breath.
    concurrency_limit: usize,
    last_write_id: u64,
    random_state: u64,
    counters: Counters,
    /// How long those waited who were admitted since that was asked last, in seconds.
    admission_waits_s: Vec<i64>,
}

/// A write that is under way.
#[derive(Debug)]
struct InFlightWrite {
    object: ObjectRef,
    purpose: WritePurpose,
    /// The version that it was decided on.
    version: u64,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Cycles.
    pub cycles: u64,
    /// What became of those that a cycle looked at, by the name of the decision.
    pub decisions: [(&'static str, u64); 6],
    /// Admissions that were written.
    pub admitted: u64,
    /// Workloads that a cycle told to go, by reason.
    pub victims: [(PreemptionReason, u64); 4],
    /// Events that were not written because too many waited.
    pub dropped_events: u64,
}

impl Default for Counters {
    fn default() -> Self {
        let reasons = [
            PreemptionReason::InClusterQueue,
            PreemptionReason::InCohortReclamation,
            PreemptionReason::InCohortReclaimWhileBorrowing,
            PreemptionReason::InCohortFairSharing,
        ];
        Self {
            cycles: 0,
            decisions: Decision::NAMES.map(|it| (it, 0)),
            admitted: 0,
            victims: reasons.map(|it| (it, 0)),
            dropped_events: 0,
        }
    }
}

impl Reconciler {
    /// Nothing seen yet, and not leading.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut objects = ClusterState::new(
            settings.options.clone(),
            settings.requeue.clone(),
            Completeness::Complete,
        );
        objects.state_mut().treat_new_as_newest();
        Self {
            objects,
            workloads: BTreeMap::new(),
            templates: TemplateInterner::default(),
            jobs: BTreeMap::new(),
            queues: Queues::default(),
            event_recorder: EventRecorder::default(),
            work_queue: WorkQueue::default(),
            in_flight: BTreeMap::new(),
            listed_kinds: BTreeSet::new(),
            newest_workload_version: 0,
            is_leading: false,
            is_cycle_due: false,
            continuing_searches: BTreeSet::new(),
            searched_again: BTreeSet::new(),
            withdrawn_admissions: 0,
            to_requeue: Vec::new(),
            pending_decisions: 0,
            next_cycle_at_ms: 0,
            concurrency_limit: settings.writes_max.max(1),
            last_write_id: 0,
            random_state: settings.seed,
            counters: Counters::default(),
            admission_waits_s: Vec::new(),
            settings,
        }
    }

    /// The objects and the state made of them.
    #[must_use]
    pub const fn objects(&self) -> &ClusterState {
        &self.objects
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        Counters {
            dropped_events: self.event_recorder.dropped(),
            ..self.counters
        }
    }

    /// How long those waited who were admitted since this was asked last, in seconds.
    pub fn take_admission_waits(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.admission_waits_s)
    }

    /// Whether a watch has shown this version of an object, or that it is gone.
    #[must_use]
    pub fn has_observed(&self, target: &ObjectRef, version: u64) -> bool {
        let track = self.tracker(target);
        track.is_none_or(|it| it.version >= version)
    }

    /// How many writes are under way.
    #[must_use]
    pub fn in_flight_writes(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether all that there is was seen once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let jobs = self.settings.job_kinds.iter().map(|kind| Kind::Job(*kind));
        let mut all = Kind::FIXED.into_iter().chain(jobs);
        all.all(|kind| self.listed_kinds.contains(&kind))
    }

    /// What is to be done now.
    pub fn poll(&mut self, now_ms: i64) -> Output {
        self.objects.set_now(now_ms);
        self.event_recorder.set_now(now_ms, &self.settings.instance);
        if !self.is_leading || !self.is_synced() {
            return Output::default();
        }
        self.work_queue.advance_timers(now_ms);
        self.flush_summaries();
        self.plan_dirty(now_ms);
        let mut cycles = 0;
        let rests = now_ms < self.next_cycle_at(now_ms);
        while !rests && self.can_schedule() && cycles < CYCLES_MAX {
            self.run_cycle(now_ms);
            self.plan_dirty(now_ms);
            cycles = cycles.saturating_add(1);
        }
        if (1..CYCLES_MAX).contains(&cycles) {
            self.next_cycle_at_ms = now_ms.saturating_add(SCHEDULING_PAUSE_MS);
        }
        let writes = self.dispatch(now_ms);
        let again = self.can_schedule().then(|| self.next_cycle_at(now_ms));
        Output {
            writes,
            wake_at_ms: again.into_iter().chain(self.wake_at(now_ms)).min(),
        }
    }

    /// When it may be decided again: soon, also if the clock was set back.
    fn next_cycle_at(&self, now_ms: i64) -> i64 {
        let is_just_now = self.next_cycle_at_ms.saturating_sub(now_ms) <= SCHEDULING_PAUSE_MS;
        let until_ms = if is_just_now {
            self.next_cycle_at_ms
        } else {
            now_ms
        };
        until_ms.max(now_ms)
    }

    fn wake_at(&self, now_ms: i64) -> Option<i64> {
        let state = self.objects.state();
        let state = state.next_wake_s().filter(|at_s| *at_s < i64::MAX);
        let state = state.map(|at_s| at_s.saturating_mul(1000).max(self.next_cycle_at(now_ms)));
        let notices = (self.work_queue.highest_priority()
            == Some(WritePurpose::PendingReason.priority()))
        .then(|| now_ms.saturating_add(PENDING_REASON_PAUSE_MS));
        let sums = self.event_recorder.summaries_due_ms();
        let all = [self.work_queue.next_timer(), state, notices, sums];
        all.into_iter().flatten().min()
    }

    /// Looks at whatever has changed, and ranks what it has to write.
    fn plan_dirty(&mut self, now_ms: i64) {
        while let Some(target) = self.work_queue.pop_dirty() {
            let plan = self.plan(&target, now_ms);
            if let Some(at_ms) = plan.replan_at_ms {
                self.work_queue.enqueue_at(at_ms, target.clone());
            }
            self.work_queue
                .set_ready(target, plan.purpose.map(WritePurpose::priority));
        }
    }

    /// Begins what is most urgent, as much as may be under way.
    fn dispatch(&mut self, now_ms: i64) -> Vec<WriteRequest> {
        let mut writes = Vec::new();
        while self.in_flight.len() < self.concurrency_limit
            && let Some(rank) = self.work_queue.highest_priority()
        {
            // Why it waits may be another thing after the next decision.
            if rank == WritePurpose::PendingReason.priority()
                && (self.can_schedule()
                    || !self.event_recorder.take_pending_reason_token(
                        now_ms,
                        self.settings.pending_reason_writes_per_second,
                    ))
            {
                break;
            }
            let Some(target) = self.work_queue.pop_ready() else {
                break;
            };
            if let Some((what, verb)) = self.build_write(&target, now_ms) {
                writes.push(self.begin_write(target, what, verb));
            }
        }
        writes
    }

    fn begin_write(
        &mut self,
        target: ObjectRef,
        what: WritePurpose,
        verb: WriteOp,
    ) -> WriteRequest {
        self.last_write_id = self.last_write_id.wrapping_add(1);
        let ticket = WriteId(self.last_write_id);
        let mut version = 0;
        if let Some(track) = self.tracker_mut(&target) {
            track.in_flight = Some(ticket);
            version = track.version;
        }
        let flight = InFlightWrite {
            object: target.clone(),
            purpose: what,
            version,
        };
        self.in_flight.insert(ticket, flight);
        WriteRequest {
            id: ticket,
            object: target,
            purpose: what,
            op: verb,
        }
    }

    /// What an object has to write now, and when to look again.
    fn plan(&mut self, target: &ObjectRef, now_ms: i64) -> Plan {
        self.expire_conflict(target, now_ms);
        if let Some(track) = self.tracker(target) {
            if track.conflicted {
                return Plan::at(track.backoff.retry_at_ms);
            }
            if track.in_flight.is_some() || track.version < track.min_version {
                return Plan::NOTHING;
            }
            if track.backoff.retry_at_ms > now_ms {
                return Plan::at(track.backoff.retry_at_ms);
            }
        }
        match target {
            ObjectRef::Workload(name) => self.plan_workload(name, now_ms),
            ObjectRef::Job(name) => self.plan_job(name),
            ObjectRef::ClusterQueue(name) => self.plan_cluster_queue(name, now_ms),
            ObjectRef::Cohort(name) => self.plan_cohort(name, now_ms),
            ObjectRef::LocalQueue(name) => self.plan_local_queue(name, now_ms),
            ObjectRef::ResourceFlavor(name) => self.plan_flavor(name),
            ObjectRef::Event(number) => self.event_recorder.plan(*number),
        }
    }

    /// Whoever outran a write is not seen for so long that there may be nobody: it is decided again on what
    /// is seen, and the version shows whether that is all.
    fn expire_conflict(&mut self, target: &ObjectRef, now_ms: i64) {
        let Some(track) = self.tracker_mut(target) else {
            return;
        };
        if !track.conflicted || track.backoff.retry_at_ms > now_ms {
            return;
        }
        track.conflicted = false;
        track.min_version = track.version;
        // Who waited for it to be settled goes on, too.
        match target {
            ObjectRef::Workload(name) => {
                let job = self.workloads.get(name).and_then(|it| it.job.clone());
                if let Some(job) = job {
                    self.work_queue.enqueue(ObjectRef::Job(job));
                }
            }
            ObjectRef::Job(name) => {
                let known = self.jobs.get(name);
                let workload = known.map(|it| it.view.workload_name(name.kind));
                if let Some(workload) = workload {
                    self.work_queue.enqueue(ObjectRef::Workload(workload));
                }
            }
            _ => {}
        }
    }

    /// The write itself.
    fn build_write(&mut self, target: &ObjectRef, now_ms: i64) -> Option<(WritePurpose, WriteOp)> {
        let what = self.plan(target, now_ms).purpose?;
        let verb = match target {
            ObjectRef::Workload(name) => self.build_workload_write(name, what, now_ms),
            ObjectRef::Job(name) => self.build_job_write(name, what),
            ObjectRef::ClusterQueue(name) => self.build_cluster_queue_write(name, what, now_ms),
            ObjectRef::Cohort(name) => self.build_cohort_write(name, now_ms),
            ObjectRef::LocalQueue(name) => self.build_local_queue_write(name, now_ms),
            ObjectRef::ResourceFlavor(name) => self.build_flavor_write(name),
            ObjectRef::Event(number) => self.event_recorder.build_write(*number, now_ms),
        }?;
        Some((what, verb))
    }

    fn tracker(&self, target: &ObjectRef) -> Option<&WriteTracker> {
        match target {
            ObjectRef::Workload(name) => self.workloads.get(name).map(|it| &it.tracker),
            ObjectRef::Job(name) => self.jobs.get(name).map(|it| &it.tracker),
            ObjectRef::Event(number) => self.event_recorder.tracker(*number),
            other => self.queues.tracker(other),
        }
    }

    fn tracker_mut(&mut self, target: &ObjectRef) -> Option<&mut WriteTracker> {
        match target {
            ObjectRef::Workload(name) => self.workloads.get_mut(name).map(|it| &mut it.tracker),
            ObjectRef::Job(name) => self.jobs.get_mut(name).map(|it| &mut it.tracker),
            ObjectRef::Event(number) => self.event_recorder.tracker_mut(*number),
            other => self.queues.tracker_mut(other),
        }
    }

    /// Numbers that look like chance, always the same for the same seed (`SplitMix64`).
    fn next_random(&mut self) -> u64 {
        self.random_state = self.random_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random_state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn is_listed(&self, kind: Kind) -> bool {
        self.listed_kinds.contains(&kind)
    }

    fn has_job_kind(&self, kind: usize) -> bool {
        kind < KINDS.len() && self.settings.job_kinds.contains(&kind)
    }

    /// A number for the jitter of a backoff.
    #[allow(clippy::cast_possible_truncation, reason = "the upper half fits")]
    fn jitter(&self) -> Jitter {
        Jitter::new((self.random_state >> 32) as u32)
    }
}

/// What comes of a look at an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    purpose: Option<WritePurpose>,
    replan_at_ms: Option<i64>,
}

impl Plan {
    const NOTHING: Self = Self {
        purpose: None,
        replan_at_ms: None,
    };

    const fn write(what: WritePurpose) -> Self {
        Self {
            purpose: Some(what),
            replan_at_ms: None,
        }
    }

    const fn at(at_ms: i64) -> Self {
        Self {
            purpose: None,
            replan_at_ms: Some(at_ms),
        }
    }
}
