//! What is to be written, from what is seen.
//!
//! Everything is decided from the objects as the watches show them: nothing that matters is remembered
//! besides, so that a restart at any point loses nothing. Each object has at most one write under way, and
//! after it nothing more until the watch has shown what came of it. A write carries the resource version
//! that it was decided on; who was outrun decides again.
//!
//! What takes quota is counted from the decision on. What gives it back is counted when the API server has
//! confirmed it, so that at the API server, too, the sum never goes above the limits.

mod conditions;
mod decide;
mod input;
mod job;
mod life;
mod news;
mod notice;
mod order;
mod output;
mod pace;
mod purse;
mod queues;
mod retry;
mod schedule;
mod status;
mod taking;
mod templates;
mod track;
mod workload;

pub use input::{Change, Input, JobName, Kind, Name};
pub use output::{Outcome, Output, Target, Ticket, Verb, What, Write};

use crate::jobs::KINDS;
use job::KnownJob;
use lockkeeper_policies::settings::Settings as RuleSettings;
use lockkeeper_preemption::requeue::{Jitter, Settings as RequeueSettings};
use lockkeeper_preemption::{Decision, Options, Reason, WorkloadId};
use lockkeeper_snapshot::objects::{Knowledge, Objects};
use news::News;
use queues::Queues;
use schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet};
use templates::Templates;
use track::Track;
use workload::Known;

/// The most cycles in one go; then writes are begun and inputs taken before it goes on.
const CYCLES_MAX: u32 = 64;

/// Between two rounds of decisions, in milliseconds: what comes in meanwhile is decided on together, and who
/// comes after a rest is decided on at once.
const DECIDE_PAUSE_MS: i64 = 20;

/// Between two looks at whether a workload may be told why it waits, in milliseconds.
const NOTICE_PAUSE_MS: i64 = 100;

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
    pub notices_per_second: u32,
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
    objects: Objects,
    /// In boxes: half of a map that is filled in order stays empty.
    workloads: BTreeMap<Name, Box<Known>>,
    templates: Templates,
    jobs: BTreeMap<JobName, KnownJob>,
    queues: Queues,
    news: News,
    schedule: Schedule,
    flights: BTreeMap<Ticket, Flight>,
    /// What of a listing that is not complete was seen, by kind, is kept by whoever lists.
    listed: BTreeSet<Kind>,
    /// The newest version of a workload that was seen.
    workloads_at: u64,
    is_leading: bool,
    /// Whether a cycle may find something to do.
    has_moved: bool,
    /// Whose search for flavors goes on in the next cycle.
    searching: BTreeSet<WorkloadId>,
    /// Who has looked at all flavors once more since the last input.
    looked_again: BTreeSet<WorkloadId>,
    /// How many admissions were taken back since the last input.
    withdrawn: u32,
    /// Who is to look at all flavors once more.
    to_unpark: Vec<WorkloadId>,
    /// Decisions that are not written yet.
    orders: usize,
    /// Nothing is decided before this time, in milliseconds.
    rests_until_ms: i64,
    /// How many writes may be under way now; fewer while the API server is short of breath.
    limit: usize,
    tickets: u64,
    chance: u64,
    figures: Figures,
    /// How long those waited who were admitted since that was asked last, in seconds.
    waits_s: Vec<i64>,
}

/// A write that is under way.
#[derive(Debug)]
struct Flight {
    target: Target,
    what: What,
    /// The version that it was decided on.
    version: u64,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Cycles.
    pub cycles: u64,
    /// What became of those that a cycle looked at, by the name of the decision.
    pub decisions: [(&'static str, u64); 6],
    /// Admissions that were written.
    pub admitted: u64,
    /// Workloads that a cycle told to go, by reason.
    pub victims: [(Reason, u64); 4],
    /// Events that were not written because too many waited.
    pub events_dropped: u64,
}

impl Default for Figures {
    fn default() -> Self {
        let reasons = [
            Reason::InClusterQueue,
            Reason::InCohortReclamation,
            Reason::InCohortReclaimWhileBorrowing,
            Reason::InCohortFairSharing,
        ];
        Self {
            cycles: 0,
            decisions: Decision::NAMES.map(|it| (it, 0)),
            admitted: 0,
            victims: reasons.map(|it| (it, 0)),
            events_dropped: 0,
        }
    }
}

impl Reconciler {
    /// Nothing seen yet, and not leading.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut objects = Objects::new(
            settings.options.clone(),
            settings.requeue.clone(),
            Knowledge::Whole,
        );
        objects.state_mut().count_new_as_newest();
        Self {
            objects,
            workloads: BTreeMap::new(),
            templates: Templates::default(),
            jobs: BTreeMap::new(),
            queues: Queues::default(),
            news: News::default(),
            schedule: Schedule::default(),
            flights: BTreeMap::new(),
            listed: BTreeSet::new(),
            workloads_at: 0,
            is_leading: false,
            has_moved: false,
            searching: BTreeSet::new(),
            looked_again: BTreeSet::new(),
            withdrawn: 0,
            to_unpark: Vec::new(),
            orders: 0,
            rests_until_ms: 0,
            limit: settings.writes_max.max(1),
            tickets: 0,
            chance: settings.seed,
            figures: Figures::default(),
            waits_s: Vec::new(),
            settings,
        }
    }

    /// The objects and the state made of them.
    #[must_use]
    pub const fn objects(&self) -> &Objects {
        &self.objects
    }

    /// What was counted.
    #[must_use]
    pub const fn figures(&self) -> Figures {
        Figures {
            events_dropped: self.news.dropped(),
            ..self.figures
        }
    }

    /// How long those waited who were admitted since this was asked last, in seconds.
    pub fn take_waits(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.waits_s)
    }

    /// Whether a watch has shown this version of an object, or that it is gone.
    #[must_use]
    pub fn has_seen(&self, target: &Target, version: u64) -> bool {
        let track = self.track(target);
        track.is_none_or(|it| it.version >= version)
    }

    /// How many writes are under way.
    #[must_use]
    pub fn writes_under_way(&self) -> usize {
        self.flights.len()
    }

    /// Whether all that there is was seen once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let jobs = self.settings.job_kinds.iter().map(|kind| Kind::Job(*kind));
        let mut all = Kind::FIXED.into_iter().chain(jobs);
        all.all(|kind| self.listed.contains(&kind))
    }

    /// What is to be done now.
    pub fn next(&mut self, now_ms: i64) -> Output {
        self.objects.set_now(now_ms);
        self.news.set_now(now_ms, &self.settings.instance);
        if !self.is_leading || !self.is_synced() {
            return Output::default();
        }
        self.schedule.fire(now_ms);
        self.tell_sums();
        self.settle(now_ms);
        let mut cycles = 0;
        let rests = now_ms < self.rests_until(now_ms);
        while !rests && self.may_decide() && cycles < CYCLES_MAX {
            self.decide(now_ms);
            self.settle(now_ms);
            cycles = cycles.saturating_add(1);
        }
        if (1..CYCLES_MAX).contains(&cycles) {
            self.rests_until_ms = now_ms.saturating_add(DECIDE_PAUSE_MS);
        }
        let writes = self.dispatch(now_ms);
        let again = self.may_decide().then(|| self.rests_until(now_ms));
        Output {
            writes,
            wake_at_ms: again.into_iter().chain(self.wake_at(now_ms)).min(),
        }
    }

    /// When it may be decided again: soon, also if the clock was set back.
    fn rests_until(&self, now_ms: i64) -> i64 {
        let is_just_now = self.rests_until_ms.saturating_sub(now_ms) <= DECIDE_PAUSE_MS;
        let until_ms = if is_just_now {
            self.rests_until_ms
        } else {
            now_ms
        };
        until_ms.max(now_ms)
    }

    fn wake_at(&self, now_ms: i64) -> Option<i64> {
        let state = self.objects.state();
        let state = state.next_wake_s().filter(|at_s| *at_s < i64::MAX);
        let state = state.map(|at_s| at_s.saturating_mul(1000).max(self.rests_until(now_ms)));
        let notices = (self.schedule.first_rank() == Some(What::Notice.rank()))
            .then(|| now_ms.saturating_add(NOTICE_PAUSE_MS));
        let sums = self.news.sums_due_ms();
        let all = [self.schedule.next_timer(), state, notices, sums];
        all.into_iter().flatten().min()
    }

    /// Looks at whatever has changed, and ranks what it has to write.
    fn settle(&mut self, now_ms: i64) {
        while let Some(target) = self.schedule.pop_dirty() {
            let plan = self.plan(&target, now_ms);
            if let Some(at_ms) = plan.look_at_ms {
                self.schedule.at(at_ms, target.clone());
            }
            self.schedule.rank(target, plan.what.map(What::rank));
        }
    }

    /// Begins what is most urgent, as much as may be under way.
    fn dispatch(&mut self, now_ms: i64) -> Vec<Write> {
        let mut writes = Vec::new();
        while self.flights.len() < self.limit
            && let Some(rank) = self.schedule.first_rank()
        {
            // Why it waits may be another thing after the next decision.
            if rank == What::Notice.rank()
                && (self.may_decide()
                    || !self
                        .news
                        .take_notice(now_ms, self.settings.notices_per_second))
            {
                break;
            }
            let Some(target) = self.schedule.pop_ready() else {
                break;
            };
            if let Some((what, verb)) = self.draft(&target, now_ms) {
                writes.push(self.begin(target, what, verb));
            }
        }
        writes
    }

    fn begin(&mut self, target: Target, what: What, verb: Verb) -> Write {
        self.tickets = self.tickets.wrapping_add(1);
        let ticket = Ticket(self.tickets);
        let mut version = 0;
        if let Some(track) = self.track_mut(&target) {
            track.flight = Some(ticket);
            version = track.version;
        }
        let flight = Flight {
            target: target.clone(),
            what,
            version,
        };
        self.flights.insert(ticket, flight);
        Write {
            ticket,
            target,
            what,
            verb,
        }
    }

    /// What an object has to write now, and when to look again.
    fn plan(&mut self, target: &Target, now_ms: i64) -> Plan {
        self.stop_waiting(target, now_ms);
        if let Some(track) = self.track(target) {
            if track.is_outrun {
                return Plan::at(track.retry.at_ms);
            }
            if track.flight.is_some() || track.version < track.awaits {
                return Plan::REST;
            }
            if track.retry.at_ms > now_ms {
                return Plan::at(track.retry.at_ms);
            }
        }
        match target {
            Target::Workload(name) => self.plan_workload(name, now_ms),
            Target::Job(name) => self.plan_job(name),
            Target::ClusterQueue(name) => self.plan_cluster_queue(name, now_ms),
            Target::Cohort(name) => self.plan_cohort(name, now_ms),
            Target::LocalQueue(name) => self.plan_local_queue(name, now_ms),
            Target::ResourceFlavor(name) => self.plan_flavor(name),
            Target::Event(number) => self.news.plan(*number),
        }
    }

    /// Whoever outran a write is not seen for so long that there may be nobody: it is decided again on what
    /// is seen, and the version shows whether that is all.
    fn stop_waiting(&mut self, target: &Target, now_ms: i64) {
        let Some(track) = self.track_mut(target) else {
            return;
        };
        if !track.is_outrun || track.retry.at_ms > now_ms {
            return;
        }
        track.is_outrun = false;
        track.awaits = track.version;
        // Who waited for it to be settled goes on, too.
        match target {
            Target::Workload(name) => {
                let job = self.workloads.get(name).and_then(|it| it.job.clone());
                if let Some(job) = job {
                    self.schedule.mark(Target::Job(job));
                }
            }
            Target::Job(name) => {
                let known = self.jobs.get(name);
                let workload = known.map(|it| it.seen.workload_name(name.kind));
                if let Some(workload) = workload {
                    self.schedule.mark(Target::Workload(workload));
                }
            }
            _ => {}
        }
    }

    /// The write itself.
    fn draft(&mut self, target: &Target, now_ms: i64) -> Option<(What, Verb)> {
        let what = self.plan(target, now_ms).what?;
        let verb = match target {
            Target::Workload(name) => self.draft_workload(name, what, now_ms),
            Target::Job(name) => self.draft_job(name, what),
            Target::ClusterQueue(name) => self.draft_cluster_queue(name, what, now_ms),
            Target::Cohort(name) => self.draft_cohort(name, now_ms),
            Target::LocalQueue(name) => self.draft_local_queue(name, now_ms),
            Target::ResourceFlavor(name) => self.draft_flavor(name),
            Target::Event(number) => self.news.draft(*number, now_ms),
        }?;
        Some((what, verb))
    }

    fn track(&self, target: &Target) -> Option<&Track> {
        match target {
            Target::Workload(name) => self.workloads.get(name).map(|it| &it.track),
            Target::Job(name) => self.jobs.get(name).map(|it| &it.track),
            Target::Event(number) => self.news.track(*number),
            other => self.queues.track(other),
        }
    }

    fn track_mut(&mut self, target: &Target) -> Option<&mut Track> {
        match target {
            Target::Workload(name) => self.workloads.get_mut(name).map(|it| &mut it.track),
            Target::Job(name) => self.jobs.get_mut(name).map(|it| &mut it.track),
            Target::Event(number) => self.news.track_mut(*number),
            other => self.queues.track_mut(other),
        }
    }

    /// Numbers that look like chance, always the same for the same seed (`SplitMix64`).
    fn roll(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn is_listed(&self, kind: Kind) -> bool {
        self.listed.contains(&kind)
    }

    fn knows_job_kind(&self, kind: usize) -> bool {
        kind < KINDS.len() && self.settings.job_kinds.contains(&kind)
    }

    /// A number for the jitter of a backoff.
    #[allow(clippy::cast_possible_truncation, reason = "the upper half fits")]
    fn jitter(&self) -> Jitter {
        Jitter::new((self.chance >> 32) as u32)
    }
}

/// What comes of a look at an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    what: Option<What>,
    look_at_ms: Option<i64>,
}

impl Plan {
    const REST: Self = Self {
        what: None,
        look_at_ms: None,
    };

    const fn write(what: What) -> Self {
        Self {
            what: Some(what),
            look_at_ms: None,
        }
    }

    const fn at(at_ms: i64) -> Self {
        Self {
            what: None,
            look_at_ms: Some(at_ms),
        }
    }
}
