//! Preemption loops, kept as scenarios: the results of each cycle, and whether the loop ends.
//!
//! A round is one cycle; its victims release their quota immediately, and become pending again. A file lists the
//! results of each round without damping, with `loopFrom` (from 1): the state before that round repeats after the last
//! one. `damped` lists the results with damping.

use lockkeeper_preemption::{Compatibility, Cycle, Decision, WorkloadId};
use lockkeeper_scenario::{LoadedScenario, Scenario, UsageAmount, load};
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// Rounds without a change after which a run is quiescent.
const QUIET_ROUNDS: usize = 20;

/// The fields of a file in addition to the scenario.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoopExpectation {
    rounds: Vec<CycleEvents>,
    loop_from: Option<usize>,
    /// The rounds with damping, until nothing changes any more.
    damped: Vec<CycleEvents>,
}

/// The fields of a file in `fixed` in addition to the scenario.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DampingExpectation {
    victims_go: VictimExit,
    /// One of these workloads must be admitted at the end.
    runs_in_the_end: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum VictimExit {
    /// Right after the cycle.
    #[default]
    AtOnce,
    /// One before each cycle.
    OneARound,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CycleEvents {
    /// Workloads that were created before the cycle.
    arrived: Vec<String>,
    admitted: Vec<String>,
    /// The victims, by preemptor.
    preempted: BTreeMap<String, Vec<Eviction>>,
}

impl CycleEvents {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Eviction {
    workload: String,
    reason: String,
}

/// The visible part of the state that determines the next cycles.
#[derive(Debug, PartialEq)]
struct StateSnapshot {
    /// In the order of their reservations.
    running: Vec<Vec<String>>,
    usage: BTreeMap<String, Vec<UsageAmount>>,
    active: BTreeMap<String, Vec<String>>,
    inadmissible: BTreeMap<String, Vec<String>>,
}

struct Replay {
    loaded: LoadedScenario,
    /// By the time of the reservation.
    running: BTreeMap<i64, Vec<String>>,
    victim_exit: VictimExit,
    /// Victims that have not released their quota yet.
    leaving: VecDeque<String>,
    now_s: i64,
}

impl Replay {
    fn new(scenario: &Scenario) -> Self {
        let mut running: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for workload in &scenario.admitted {
            let reserved_at_s = workload.quota_reserved_time.unwrap_or(scenario.now);
            let then = running.entry(reserved_at_s).or_default();
            then.push(workload.name.clone());
        }
        Self {
            loaded: load(scenario, Compatibility::Lockkeeper).unwrap(),
            running,
            victim_exit: VictimExit::AtOnce,
            leaving: VecDeque::new(),
            now_s: scenario.now,
        }
    }

    fn run_cycle(&mut self, arrived: &[String]) -> CycleEvents {
        for name in arrived {
            let late = self.loaded.late.remove(name).expect("a late workload");
            self.loaded.add_pending(&late);
        }
        if let Some(victim) = self.leaving.pop_front() {
            self.release(&victim);
        }
        self.now_s += 1;
        let cycle = self.loaded.state.next_cycle(self.now_s, false);
        let round = CycleEvents {
            arrived: arrived.to_vec(),
            ..self.cycle_events(&cycle)
        };
        let admitted = self.running.entry(self.now_s).or_default();
        admitted.clone_from(&round.admitted);
        for gone in round.preempted.values().flatten() {
            if self.victim_exit == VictimExit::AtOnce {
                self.release(&gone.workload);
            } else if !self.leaving.contains(&gone.workload) {
                let id = self.loaded.state.workload(&gone.workload).unwrap();
                self.loaded.state.mark_evicted(id);
                self.leaving.push_back(gone.workload.clone());
            }
        }
        round
    }

    fn release(&mut self, victim: &str) {
        let id = self.loaded.state.workload(victim).unwrap();
        self.loaded.state.release(id);
        for then in self.running.values_mut() {
            then.retain(|it| it != victim);
        }
        self.running.retain(|_, then| !then.is_empty());
    }

    fn cycle_events(&self, cycle: &Cycle) -> CycleEvents {
        let name = |id: WorkloadId| self.loaded.state.workload_name(id).to_owned();
        let mut round = CycleEvents::default();
        for entry in &cycle.entries {
            match &entry.decision {
                Decision::Admit => round.admitted.push(name(entry.workload)),
                Decision::Preempt(victims) => {
                    let gone = victims.iter().map(|it| Eviction {
                        workload: name(it.workload),
                        reason: it.reason.as_str().to_owned(),
                    });
                    let mut gone: Vec<Eviction> = gone.collect();
                    gone.sort();
                    round.preempted.insert(name(entry.workload), gone);
                }
                _ => {}
            }
        }
        round.admitted.sort();
        round
    }

    fn state_snapshot(&self) -> StateSnapshot {
        let state = &self.loaded.state;
        let names = |ids: Vec<WorkloadId>| -> Vec<String> {
            ids.into_iter()
                .map(|it| state.workload_name(it).to_owned())
                .collect()
        };
        let queues = || state.queues().map(|(name, id)| (name.to_owned(), id));
        StateSnapshot {
            running: self.running.values().cloned().collect(),
            usage: queues()
                .map(|(name, id)| (name, self.loaded.usage(id)))
                .collect(),
            active: queues()
                .map(|(name, id)| (name, names(state.node_view(id).active())))
                .collect(),
            inadmissible: queues()
                .map(|(name, id)| (name, names(state.node_view(id).inadmissible())))
                .collect(),
        }
    }
}

fn loops_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/loops")
}

/// The names and texts of the scenarios.
fn files(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|it| it.unwrap().path());
    let paths = paths.filter(|it| it.extension().is_some_and(|it| it == "yaml"));
    let mut files: Vec<(String, String)> = paths
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{}", folder.display());
    files
}

fn parse(name: &str, text: &str) -> (Scenario, LoopExpectation) {
    let scenario: Scenario = serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let story: LoopExpectation =
        serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(scenario.id, name);
    (scenario, story)
}

#[test]
fn recorded_loops_repeat_without_damping() {
    for (name, text) in files(&loops_folder()) {
        let (mut scenario, story) = parse(&name, &text);
        scenario.damping = Some(false);
        let mut run = Replay::new(&scenario);
        let mut standings = Vec::new();
        for (at, expected) in story.rounds.iter().enumerate() {
            standings.push(run.state_snapshot());
            let round = run.run_cycle(&expected.arrived);
            assert_eq!(round, *expected, "{name}, round {}", at + 1);
        }
        let Some(from) = story.loop_from else {
            for _ in 0..QUIET_ROUNDS {
                let round = run.run_cycle(&[]);
                assert!(round.is_empty(), "{name} goes on: {round:?}");
            }
            continue;
        };
        let turn = &story.rounds[from - 1..];
        assert!(turn.iter().any(|it| !it.preempted.is_empty()), "{name}");
        for times in 1..=3 {
            let standing = run.state_snapshot();
            assert_eq!(standing, standings[from - 1], "{name}, after {times}");
            for expected in turn {
                assert_eq!(run.run_cycle(&[]), *expected, "{name}, after {times}");
            }
        }
    }
}

#[test]
fn recorded_loops_end_with_damping() {
    for (name, text) in files(&loops_folder()) {
        let (mut scenario, story) = parse(&name, &text);
        scenario.damping = Some(true);
        let mut run = Replay::new(&scenario);
        for (at, expected) in story.damped.iter().enumerate() {
            let round = run.run_cycle(&expected.arrived);
            assert_eq!(round, *expected, "{name}, round {}", at + 1);
        }
        for _ in 0..QUIET_ROUNDS {
            let round = run.run_cycle(&[]);
            assert!(round.is_empty(), "{name} goes on: {round:?}");
        }
    }
}

/// The nominal quota of f0 of all queues together, and their usage of it.
fn quota_and_usage(scenario: &Scenario, run: &Replay) -> (i64, i64) {
    let queues = scenario.cluster_queues.iter();
    let flavors = queues.flat_map(|it| &it.resource_groups[0].flavors);
    let flavors = flavors.filter(|it| it.name == "f0");
    let quota = flavors.map(|it| it.quotas[0].nominal.in_core_units("cpu").unwrap());
    let used = run.state_snapshot().usage.into_values().flatten();
    let used = used.filter(|it| it.flavor == "f0");
    (quota.sum(), used.map(|it| it.amount).sum())
}

/// They end within the quota, and one of the required workloads is admitted.
#[test]
fn damping_regressions_end_within_quota() {
    let mut wrong = Vec::new();
    for (name, text) in files(&loops_folder().join("fixed")) {
        let mut scenario: Scenario = serde_saphyr::from_str(&text).unwrap();
        scenario.damping = Some(true);
        let wish: DampingExpectation = serde_saphyr::from_str(&text).unwrap();
        let mut run = Replay::new(&scenario);
        run.victim_exit = wish.victims_go;
        let rounds: Vec<CycleEvents> = (0..5 * QUIET_ROUNDS).map(|_| run.run_cycle(&[])).collect();
        let (quota, used) = quota_and_usage(&scenario, &run);
        if scenario.cohorts.is_empty() && used > quota {
            wrong.push(format!("{name}: {used} of {quota} is used"));
        }
        let end = &rounds[4 * QUIET_ROUNDS..];
        let running: Vec<&String> = run.running.values().flatten().collect();
        let mut wanted = wish.runs_in_the_end.iter();
        if !wish.runs_in_the_end.is_empty() && wanted.all(|it| !running.contains(&it)) {
            wrong.push(format!("{name}: only {running:?} run"));
        }
        if end.iter().any(|it| !it.is_empty()) {
            wrong.push(format!("{name} goes on: {:?}", &end[..6]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn readme_lists_every_recorded_loop() {
    let readme = fs::read_to_string(loops_folder().join("README.md")).unwrap();
    for (name, _) in files(&loops_folder()) {
        assert!(readme.contains(&format!("`{name}.yaml`")), "{name}");
    }
}
