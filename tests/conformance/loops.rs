//! Loops, kept as scenarios: what happens round by round, and whether it ends.
//!
//! A round is one cycle; whoever it tells to go goes at once, and waits again. A file says what each round
//! does without damping, with `loopFrom` (from 1) that the state before that round comes back after the last,
//! and in `damped` what happens with damping.

use lockkeeper_preemption::{Compatibility, Cycle, Decision, WorkloadId};
use lockkeeper_snapshot::scenario::{Loaded, Scenario, Used, load};
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// Rounds after which what rests has rested.
const REST_ROUNDS: usize = 20;

/// What a file has beside the scenario.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Story {
    rounds: Vec<Round>,
    loop_from: Option<usize>,
    /// What happens with damping, until it ends.
    damped: Vec<Round>,
}

/// What a file in `mended` has beside the scenario.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wish {
    victims_go: Pace,
    /// One of these has to.
    runs_in_the_end: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Pace {
    /// Right after the cycle.
    #[default]
    AtOnce,
    /// One before each cycle.
    OneARound,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Round {
    /// Before the cycle.
    arrived: Vec<String>,
    admitted: Vec<String>,
    /// By preemptor.
    preempted: BTreeMap<String, Vec<Gone>>,
}

impl Round {
    fn is_still(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Gone {
    workload: String,
    reason: String,
}

/// All that decides what happens next, as far as it can be seen.
#[derive(Debug, PartialEq)]
struct Standing {
    /// In the order of their reservations.
    running: Vec<Vec<String>>,
    usage: BTreeMap<String, Vec<Used>>,
    active: BTreeMap<String, Vec<String>>,
    parked: BTreeMap<String, Vec<String>>,
}

struct Run {
    loaded: Loaded,
    /// By the time of the reservation.
    running: BTreeMap<i64, Vec<String>>,
    pace: Pace,
    /// Victims that have not gone yet.
    leaving: VecDeque<String>,
    now_s: i64,
}

impl Run {
    fn of(scenario: &Scenario) -> Self {
        let mut running: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for workload in &scenario.admitted {
            let reserved_at_s = workload.quota_reserved_time.unwrap_or(scenario.now);
            let then = running.entry(reserved_at_s).or_default();
            then.push(workload.name.clone());
        }
        Self {
            loaded: load(scenario, Compatibility::Lockkeeper).unwrap(),
            running,
            pace: Pace::AtOnce,
            leaving: VecDeque::new(),
            now_s: scenario.now,
        }
    }

    fn round(&mut self, arrived: &[String]) -> Round {
        for name in arrived {
            let late = self.loaded.late.remove(name).expect("a late workload");
            self.loaded.add_pending(&late);
        }
        if let Some(victim) = self.leaving.pop_front() {
            self.release(&victim);
        }
        self.now_s += 1;
        let cycle = self.loaded.state.next_cycle(self.now_s, false);
        let round = Round {
            arrived: arrived.to_vec(),
            ..self.told(&cycle)
        };
        let admitted = self.running.entry(self.now_s).or_default();
        admitted.clone_from(&round.admitted);
        for gone in round.preempted.values().flatten() {
            if self.pace == Pace::AtOnce {
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

    fn told(&self, cycle: &Cycle) -> Round {
        let name = |id: WorkloadId| self.loaded.state.workload_name(id).to_owned();
        let mut round = Round::default();
        for entry in &cycle.entries {
            match &entry.decision {
                Decision::Admit => round.admitted.push(name(entry.workload)),
                Decision::Preempt(victims) => {
                    let gone = victims.iter().map(|it| Gone {
                        workload: name(it.workload),
                        reason: it.reason.as_str().to_owned(),
                    });
                    let mut gone: Vec<Gone> = gone.collect();
                    gone.sort();
                    round.preempted.insert(name(entry.workload), gone);
                }
                _ => {}
            }
        }
        round.admitted.sort();
        round
    }

    fn standing(&self) -> Standing {
        let state = &self.loaded.state;
        let names = |ids: Vec<WorkloadId>| -> Vec<String> {
            ids.into_iter()
                .map(|it| state.workload_name(it).to_owned())
                .collect()
        };
        let queues = || state.queues().map(|(name, id)| (name.to_owned(), id));
        Standing {
            running: self.running.values().cloned().collect(),
            usage: queues()
                .map(|(name, id)| (name, self.loaded.usage(id)))
                .collect(),
            active: queues()
                .map(|(name, id)| (name, names(state.active(id))))
                .collect(),
            parked: queues()
                .map(|(name, id)| (name, names(state.parked(id))))
                .collect(),
        }
    }
}

fn folder() -> PathBuf {
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

fn parsed(name: &str, text: &str) -> (Scenario, Story) {
    let scenario: Scenario = serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let story: Story = serde_saphyr::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(scenario.id, name);
    (scenario, story)
}

#[test]
fn every_kept_loop_turns_as_it_is_told() {
    for (name, text) in files(&folder()) {
        let (mut scenario, story) = parsed(&name, &text);
        scenario.damping = Some(false);
        let mut run = Run::of(&scenario);
        let mut standings = Vec::new();
        for (at, expected) in story.rounds.iter().enumerate() {
            standings.push(run.standing());
            let round = run.round(&expected.arrived);
            assert_eq!(round, *expected, "{name}, round {}", at + 1);
        }
        let Some(from) = story.loop_from else {
            for _ in 0..REST_ROUNDS {
                let round = run.round(&[]);
                assert!(round.is_still(), "{name} goes on: {round:?}");
            }
            continue;
        };
        let turn = &story.rounds[from - 1..];
        assert!(turn.iter().any(|it| !it.preempted.is_empty()), "{name}");
        for times in 1..=3 {
            let standing = run.standing();
            assert_eq!(standing, standings[from - 1], "{name}, after {times}");
            for expected in turn {
                assert_eq!(run.round(&[]), *expected, "{name}, after {times}");
            }
        }
    }
}

#[test]
fn with_damping_every_kept_loop_ends() {
    for (name, text) in files(&folder()) {
        let (mut scenario, story) = parsed(&name, &text);
        scenario.damping = Some(true);
        let mut run = Run::of(&scenario);
        for (at, expected) in story.damped.iter().enumerate() {
            let round = run.round(&expected.arrived);
            assert_eq!(round, *expected, "{name}, round {}", at + 1);
        }
        for _ in 0..REST_ROUNDS {
            let round = run.round(&[]);
            assert!(round.is_still(), "{name} goes on: {round:?}");
        }
    }
}

/// The nominal quota of f0 that all queues have together, and what they use of it.
fn quota_and_use(scenario: &Scenario, run: &Run) -> (i64, i64) {
    let queues = scenario.cluster_queues.iter();
    let flavors = queues.flat_map(|it| &it.resource_groups[0].flavors);
    let flavors = flavors.filter(|it| it.name == "f0");
    let quota = flavors.map(|it| it.quotas[0].nominal.of("cpu").unwrap());
    let used = run.standing().usage.into_values().flatten();
    let used = used.filter(|it| it.flavor == "f0");
    (quota.sum(), used.map(|it| it.amount).sum())
}

/// They end within the quota, and with one who runs of those who have to.
#[test]
fn what_damping_did_wrong_once_ends_well() {
    let mut wrong = Vec::new();
    for (name, text) in files(&folder().join("mended")) {
        let mut scenario: Scenario = serde_saphyr::from_str(&text).unwrap();
        scenario.damping = Some(true);
        let wish: Wish = serde_saphyr::from_str(&text).unwrap();
        let mut run = Run::of(&scenario);
        run.pace = wish.victims_go;
        let rounds: Vec<Round> = (0..5 * REST_ROUNDS).map(|_| run.round(&[])).collect();
        let (quota, used) = quota_and_use(&scenario, &run);
        if scenario.cohorts.is_empty() && used > quota {
            wrong.push(format!("{name}: {used} of {quota} is used"));
        }
        let end = &rounds[4 * REST_ROUNDS..];
        let running: Vec<&String> = run.running.values().flatten().collect();
        let mut wanted = wish.runs_in_the_end.iter();
        if !wish.runs_in_the_end.is_empty() && wanted.all(|it| !running.contains(&it)) {
            wrong.push(format!("{name}: only {running:?} run"));
        }
        if end.iter().any(|it| !it.is_still()) {
            wrong.push(format!("{name} goes on: {:?}", &end[..6]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_readme_tells_of_every_kept_loop() {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    for (name, _) in files(&folder()) {
        assert!(readme.contains(&format!("`{name}.yaml`")), "{name}");
    }
}
