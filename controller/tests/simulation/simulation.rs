//! A run: the API server, its clients, and the time.

use crate::api::Api;
use crate::declared_jobs::DeclaredJobs;
use crate::invariants::InvariantChecker;
use crate::jobs::JOB;
use crate::objects;
use crate::previews::Comparison;
use crate::process::ControllerProcess;
use crate::queued_pods::POD;
use crate::quota::Limits;
use lockkeeper_controller::{Kind, ObjectKey, Settings, WriteRequest};
use lockkeeper_policies::settings::Settings as RuleSettings;
use lockkeeper_preemption::requeue::{QueueOrderTimestamp, RequeueSettings as Requeue};
use lockkeeper_preemption::{Algorithm, Damping, FairStrategy, Options};
use lockkeeper_testkit::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The start time, in milliseconds since 1970.
const BEGIN_MS: i64 = 1_700_000_000_000;

/// The most steps without faults until the run has to be quiescent.
const STEPS_MAX: usize = 30_000;

/// The most time without faults until the run has to be quiescent, in milliseconds.
const QUIESCENCE_MAX_MS: i64 = 86_400_000;

/// The time that the controllers of some Jobs do not respond without faults, in milliseconds.
const SILENCE_MS: i64 = 300_000;

/// A write on its way to the API server.
pub struct InFlight {
    /// The number of the process.
    pub process: u64,
    pub write: WriteRequest,
    /// The limits that the process had observed when it began to write.
    pub limits: Limits,
    /// Whether the process had observed all changes by users.
    pub has_observed_users: bool,
    /// The newest version up to which the process had observed all changes when it began.
    pub observed_version: u64,
    /// The newest version when it began.
    pub begun_at_version: u64,
}

/// The result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// The number of writes by controllers.
    pub writes: u64,
    pub preview: Comparison,
    /// The number of decisions in logs that were made again.
    pub logged_decisions: u64,
}

pub struct Simulation {
    pub rng: Rng,
    pub api: Api,
    pub processes: Vec<ControllerProcess>,
    pub in_flight: Vec<InFlight>,
    /// The number of the process that leads as soon as the writes of the former leader have ended.
    pub next_leader: Option<u64>,
    pub settings: Settings,
    pub invariants: InvariantChecker,
    pub jobs_to_do: BTreeSet<ObjectKey>,
    pub job_timers: BTreeSet<(i64, ObjectKey)>,
    timers: BTreeMap<(ObjectKey, String), i64>,
    job_log_position: usize,
    pub pods_to_do: BTreeSet<ObjectKey>,
    pod_log_position: usize,
    pub users_left: usize,
    pub faults_left: usize,
    /// The weights of the actions.
    pub weights: [usize; 9],
    pub slow: Vec<Kind>,
    pub is_calm: bool,
    /// Controllers of Jobs that did not respond do so from now on.
    pub are_jobs_repaired: bool,
    pub last_process_number: u64,
    pub last_name_number: u64,
    is_verbose: bool,
}

impl Simulation {
    pub fn new(seed: u64, is_verbose: bool) -> Self {
        let mut dice = seeded_rng(seed);
        let mut settings = settings(&mut dice);
        settings.seed = seed;
        let weight = |dice: &mut Rng, usual: usize| usual * dice.pick(&[1, 1, 1, 2, 4, 10]);
        let weights = [
            weight(&mut dice, 40),
            weight(&mut dice, 40),
            weight(&mut dice, 20),
            weight(&mut dice, 20),
            weight(&mut dice, 10),
            weight(&mut dice, 5),
            weight(&mut dice, 2),
            weight(&mut dice, 1),
            10,
        ];
        let slow = [Kind::Workload, JOB, Kind::ClusterQueue];
        let mut simulation = Self {
            api: Api::new(BEGIN_MS),
            processes: Vec::new(),
            in_flight: Vec::new(),
            next_leader: None,
            settings,
            invariants: InvariantChecker::default(),
            jobs_to_do: BTreeSet::new(),
            job_timers: BTreeSet::new(),
            timers: BTreeMap::new(),
            job_log_position: 0,
            pods_to_do: BTreeSet::new(),
            pod_log_position: 0,
            users_left: 4 + dice.below(14),
            faults_left: *dice.pick(&[0, 0, 2, 4, 8]),
            weights,
            slow: slow.into_iter().filter(|_| dice.percent(30)).collect(),
            is_calm: false,
            are_jobs_repaired: false,
            last_process_number: 0,
            last_name_number: 0,
            is_verbose,
            rng: dice,
        };
        simulation.api.declared = DeclaredJobs::of_seed(seed);
        simulation.invariants.has_faults = simulation.faults_left > 0;
        if simulation.rng.percent(50) {
            simulation.settings.job_kinds.push(2);
            simulation.settings.has_pod_groups = true;
        }
        simulation.populate();
        simulation
    }

    fn populate(&mut self) {
        let mut objects = vec![(Kind::Namespace, objects::namespace())];
        for name in objects::FLAVORS {
            objects.push((Kind::ResourceFlavor, objects::flavor(name)));
        }
        for (name, value) in objects::CLASSES {
            objects.push((Kind::PriorityClass, objects::class(name, value)));
        }
        for name in objects::COHORTS {
            let object = objects::cohort(&mut self.rng, name);
            if self.rng.percent(60) {
                objects.push((Kind::Cohort, object));
            }
        }
        for name in objects::QUEUES {
            let queue = objects::cluster_queue(&mut self.rng, name);
            objects.push((Kind::ClusterQueue, queue));
            objects.push((Kind::LocalQueue, objects::local_queue(name)));
        }
        for (kind, object) in objects {
            self.api.create(kind, object).unwrap();
        }
        for _ in 0..2 + self.rng.below(4) {
            self.create_job();
        }
        if self.has_pods() {
            for _ in 0..=self.rng.below(4) {
                self.create_pod();
            }
        }
        self.start_process();
        self.make_leader(0);
        if self.rng.percent(30) {
            self.start_process();
        }
    }

    pub fn start_process(&mut self) {
        self.last_process_number += 1;
        let mut settings = self.settings.clone();
        settings.seed ^= self.last_process_number << 32;
        let process = ControllerProcess::new(self.last_process_number, settings, &self.api);
        self.processes.push(process);
        self.log(|| "a controller starts".to_owned());
    }

    /// Makes this process the next leader.
    pub fn make_leader(&mut self, at: usize) {
        self.next_leader = Some(self.processes[at].number);
        self.start_next_leader();
    }

    /// Starts the leadership of the next leader, if no write is in flight: a leader waits until the time limits of the
    /// former leader's writes have passed, and for the results of its own writes from an earlier leadership.
    pub fn start_next_leader(&mut self) {
        let Some(number) = self.next_leader else {
            return;
        };
        let mut processes = self.processes.iter_mut();
        let next = processes.find(|it| it.number == number);
        let Some(process) = next.filter(|it| it.write_results.is_empty()) else {
            return;
        };
        if self.in_flight.is_empty() {
            process.set_leading(&self.api, true);
            self.next_leader = None;
            self.invariants.record_leader_change(self.api.version());
            self.log(|| format!("{number} leads"));
        }
    }

    /// Runs until nothing is left to do, and compares a preview.
    pub fn run(mut self) -> Result<RunResult, String> {
        let settings = format!("{:?}", self.settings);
        self.log(|| settings);
        let mut steps = 0;
        while self.users_left > 0 {
            self.step()?;
            steps += 1;
            if steps > STEPS_MAX {
                return Err("users cannot finish their changes".to_owned());
            }
        }
        self.start_calm();
        self.run_until_quiescent(SILENCE_MS)?;
        // Controllers of Jobs that never respond must have been reported by now; then they respond.
        self.check_stuck_evictions()?;
        self.are_jobs_repaired = true;
        self.jobs_to_do.extend(self.api.names(JOB));
        if !self.run_until_quiescent(QUIESCENCE_MAX_MS)? {
            let busiest = self.invariants.most_written();
            return Err(format!("not quiescent; {busiest}"));
        }
        let result = self.check_quiescent();
        if result.is_err() {
            self.log(|| self.describe_leaders());
        }
        result?;
        let preview = self.check_preview()?;
        Ok(RunResult {
            writes: self.invariants.writes,
            preview,
            logged_decisions: self.logged_decisions(),
        })
    }

    /// The decisions in the logs of the processes that still run.
    fn logged_decisions(&self) -> u64 {
        let processes = self.processes.iter();
        processes.map(|it| it.decision_log.decisions()).sum()
    }

    /// Whether nothing is left to do within this time.
    pub fn run_until_quiescent(&mut self, ms: i64) -> Result<bool, String> {
        let begin_ms = self.api.now_ms;
        for _ in 0..STEPS_MAX {
            if self.api.now_ms - begin_ms > ms {
                return Ok(false);
            }
            if !self.step()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends the faults and elects a leader.
    fn start_calm(&mut self) {
        self.log(|| "calm begins".to_owned());
        self.is_calm = true;
        self.faults_left = 0;
        self.weights = [40, 40, 20, 20, 10, 5, 0, 0, 10];
        self.slow.clear();
        if self.processes.is_empty() {
            self.start_process();
        }
        if self.next_leader.is_none() && !self.processes.iter().any(|it| it.is_leading) {
            self.make_leader(0);
        }
        if self.rng.percent(60) {
            self.repair_objects();
        }
        self.invariants.start_calm();
    }

    pub fn log(&self, line: impl FnOnce() -> String) {
        if self.is_verbose {
            let passed = self.api.now_ms - BEGIN_MS;
            println!("{:>9} {}", passed, line());
        }
    }

    /// Delivers all watch events to the leader.
    fn describe_leaders(&self) -> String {
        let leaders = self.processes.iter().filter(|it| it.is_leading);
        let known = leaders.map(|it| format!("{:?}", it.reconciler));
        known.collect()
    }

    /// A name that was not used before.
    pub fn new_name(&mut self, prefix: &str) -> String {
        self.last_name_number += 1;
        format!("{prefix}{}", self.last_name_number)
    }

    /// Whether the pause has passed since the first call for this key.
    pub fn is_due(&mut self, key: (ObjectKey, String), pause_ms: i64) -> bool {
        let now_ms = self.api.now_ms;
        let name = key.0.clone();
        let at_ms = *self.timers.entry(key).or_insert(now_ms + pause_ms);
        if at_ms > now_ms {
            self.job_timers.insert((at_ms, name));
        }
        at_ms <= now_ms
    }

    /// Enqueues the Jobs that have changed for their controller.
    pub fn enqueue_changed_jobs(&mut self) {
        let log = self.api.log(JOB);
        let names = log[self.job_log_position..]
            .iter()
            .map(|it| it.name.clone());
        self.jobs_to_do.extend(names);
        self.job_log_position = log.len();
        while let Some((at_ms, _)) = self.job_timers.first()
            && *at_ms <= self.api.now_ms
        {
            let (_, name) = self.job_timers.pop_first().unwrap();
            self.jobs_to_do.insert(name.clone());
            self.pods_to_do.insert(name);
        }
        let log = self.api.log(POD);
        let names = log[self.pod_log_position..]
            .iter()
            .map(|it| it.name.clone());
        self.pods_to_do.extend(names);
        self.pod_log_position = log.len();
    }

    /// Whether there are pods with the queue label.
    pub fn has_pods(&self) -> bool {
        let mut kinds = self.settings.job_kinds.iter();
        kinds.any(|at| Kind::Job(*at) == POD)
    }

    pub fn workloads(&self) -> impl Iterator<Item = &Value> {
        self.api.all(Kind::Workload).map(|(_, it)| &**it)
    }
}

/// The generator of a seed. The seeds of recorded failures must keep their numbers, so this mapping does not change.
pub fn seeded_rng(seed: u64) -> Rng {
    Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
}

fn settings(dice: &mut Rng) -> Settings {
    let is_fair = dice.percent(25);
    let algorithm = if is_fair {
        Algorithm::FairSharing(vec![
            FairStrategy::LessThanOrEqualToFinalShare,
            FairStrategy::LessThanInitialShare,
        ])
    } else {
        Algorithm::Classical
    };
    let options = Options {
        algorithm,
        // Without damping there may be preemption loops, as in Kueue.
        damping: Damping::On,
        disable_partial_admission: dice.percent(30),
        ..Options::default()
    };
    let recovery = *dice.pick(&[
        None,
        Some(Duration::from_secs(2)),
        Some(Duration::from_secs(9)),
    ]);
    let requeue = Requeue {
        is_enabled: dice.percent(60),
        timeout: Duration::from_secs(*dice.pick(&[3, 8, 20])),
        recovery_timeout: recovery,
        block_admission: dice.percent(25),
        timestamp: *dice.pick(&[QueueOrderTimestamp::Eviction, QueueOrderTimestamp::Creation]),
        backoff_limit_count: Some(*dice.pick(&[0, 1, 2])),
        ..Requeue::default()
    };
    Settings {
        options,
        requeue,
        excluded_resource_prefixes: Vec::new(),
        rules: RuleSettings::default(),
        writes_max: *dice.pick(&[1, 2, 4, 16]),
        status_interval_ms: *dice.pick(&[0, 100, 1000]),
        pending_reason_writes_per_second: *dice.pick(&[1, 10, 100]),
        eviction_events_per_second: *dice.pick(&[0, 1, 100]),
        job_response_ms: *dice.pick(&[10_000, 30_000]),
        stuck_eviction_ms: *dice.pick(&[15_000, 60_000]),
        finished_retention_ms: *dice.pick(&[None, Some(0), Some(30_000)]),
        has_decision_log: true,
        template_bytes_max: *dice.pick(&[300, 1_000, usize::MAX]),
        job_kinds: vec![0],
        has_pod_groups: false,
        has_job_kinds: false,
        seed: 0,
        instance: "simulated".to_owned(),
    }
}
