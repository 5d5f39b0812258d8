//! Preemption loops: workloads are preempted, admitted again and preempted again, without end.
//!
//! There is no loop if preemptors may preempt lower priorities only, and no workload while they borrow. Otherwise
//! Kueue's rules allow some loops, and so do lockkeeper's without damping. `tests/conformance/loops` has a scenario of
//! each kind that was found; its README explains the causes.
//!
//! `LOCKKEEPER_LOOP_CLUSTERS` sets the number of random clusters and uses other ones than by default; `LOCKKEEPER_STEPS`
//! sets the number of steps.

mod kind;
mod run;
mod scenario_export;
mod shrink;

use crate::model::choices::{Choices, MODEL_BYTES, number_from_env};
use crate::model::cluster_model::{COHORTS, ClusterModel, Pods, Workload};
use crate::model::generate::{self, GeneratorOptions};
use crate::properties::check_all_limits;
use crate::reference::scheduler::usage;
use crate::reference::tree::Tree;
use kind::loop_kinds;
use lockkeeper_preemption::{
    BorrowWithinCohort, Compatibility, Damping, Options, ReclaimWithinCohort,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use run::{EvictionPace, Loop, LoopRun};
use std::collections::BTreeMap;
use std::path::Path;

/// Cycles within which a small cluster that loops repeats a state.
const CYCLES_MAX: usize = 40;

/// Cycles within which a small cluster becomes quiescent, if it ever does.
const QUIESCENCE_CYCLES_MAX: usize = 400;

/// The number of random clusters, unless the environment sets another one.
const CLUSTERS: u64 = 1500;

/// The number of steps, unless the environment sets another one.
const STEPS: u64 = 30_000;

/// The kinds of loops found so far, and the scenario file of each.
const RECORDED_LOOPS: &[(&str, &str)] = &[
    ("classical: answered", "classical-answered"),
    ("classical: chain", "classical-chain"),
    (
        "classical: robbed, InCohortReclaimWhileBorrowing",
        "classical-robbed-while-borrowing",
    ),
    (
        "classical: robbed, InCohortReclamation",
        "classical-robbed-of-nominal-quota",
    ),
    ("fair: answered", "fair-answered"),
    ("fair: chain", "fair-chain"),
    (
        "fair: robbed, InCohortFairSharing",
        "fair-robbed-of-a-share",
    ),
    (
        "fair: robbed, InCohortReclamation",
        "fair-robbed-of-nominal-quota",
    ),
];

/// A cluster to run until it loops or becomes quiescent.
struct LoopSetup {
    cluster_model: ClusterModel,
    /// Workloads that are created during the run.
    later_arrivals: Vec<Workload>,
    pace: EvictionPace,
}

impl LoopSetup {
    fn from_tape(tape: &[u8], kind: GeneratorOptions, damping: Damping) -> Self {
        let mut dice = Choices::new(tape);
        let pace = dice.pick(&[EvictionPace::Immediate, EvictionPace::OnePerCycle]);
        let mut cluster_model = generate::contended_cluster(&mut dice, kind);
        if dice.one_in(2) {
            make_scarce(&mut dice, &mut cluster_model, kind);
        }
        cluster_model.options = Options {
            algorithm: cluster_model.options.algorithm,
            compatibility: Compatibility::Lockkeeper,
            damping,
            ..Options::default()
        };
        let mut later_arrivals = Vec::new();
        for name in cluster_model.names(false) {
            if dice.one_in(2) {
                later_arrivals.extend(cluster_model.workloads.remove(&name));
            }
        }
        if dice.one_in(2) {
            // More preemptions are possible if important workloads arrive last.
            later_arrivals.sort_by_key(|it| it.priority);
        }
        Self {
            cluster_model,
            later_arrivals,
            pace,
        }
    }

    fn run(&self) -> LoopRun {
        LoopRun::new(&self.cluster_model, &self.later_arrivals, self.pace)
    }
}

/// Reduces the quotas, and permits more preemption.
fn make_scarce(dice: &mut Choices<'_>, cluster_model: &mut ClusterModel, kind: GeneratorOptions) {
    let is_flat = dice.one_in(2);
    for queue in cluster_model.queues.values_mut() {
        let flavors = queue.groups.iter_mut().flat_map(|it| &mut it.flavors);
        for limits in flavors.flat_map(|(_, limits)| limits) {
            limits.nominal = dice.amount(0, 4);
            limits.borrowing = None;
            limits.lending = None;
        }
        queue.weight = 1.0;
        if is_flat {
            queue.cohort = Some(COHORTS[0].to_owned());
        }
        for _ in 0..3 {
            if queue.preemption.reclaim_within_cohort == ReclaimWithinCohort::Never {
                queue.preemption = generate::preemption(dice, kind);
            }
        }
    }
    for number in 110..110 + dice.below(5) {
        let mut workload = generate::workload(dice, number, cluster_model);
        workload.is_in_scope = true;
        workload.pods.truncate(1);
        workload.pods[0] = Pods {
            count: 1,
            count_min: None,
            requests: vec![(1, 1)],
            ineligible: Vec::new(),
        };
        cluster_model
            .workloads
            .insert(workload.name.clone(), workload);
    }
    for workload in cluster_model.workloads.values_mut() {
        for (_, amount) in &mut workload.pods[0].requests {
            *amount = dice.amount(1, 5);
        }
    }
}

/// Random tapes without end: the same ones in each run, or different ones.
fn tapes(are_others: bool) -> impl Iterator<Item = Vec<u8>> {
    let mut runner = if are_others {
        TestRunner::default()
    } else {
        TestRunner::deterministic()
    };
    let mut rng = runner.new_rng();
    std::iter::repeat_with(move || {
        let mut tape = vec![0; MODEL_BYTES];
        rng.fill_bytes(&mut tape);
        tape
    })
}

/// The setups of the configured number of random clusters.
fn setups(kind: GeneratorOptions, damping: Damping) -> impl Iterator<Item = LoopSetup> {
    let from_env = number_from_env("LOCKKEEPER_LOOP_CLUSTERS");
    let count = usize::try_from(from_env.unwrap_or(CLUSTERS)).unwrap();
    let tapes = tapes(from_env.is_some()).take(count);
    tapes.map(move |tape| LoopSetup::from_tape(&tape, kind, damping))
}

#[test]
fn found_loops_are_of_recorded_kinds() {
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    for stage in setups(GeneratorOptions::ANY, Damping::Off) {
        let Some(found_loop) = stage.run().find_loop(CYCLES_MAX) else {
            continue;
        };
        for kind in loop_kinds(&found_loop) {
            if RECORDED_LOOPS.iter().all(|(recorded, _)| *recorded != kind) {
                let small = shrink::shrink(&found_loop).unwrap_or_else(|| found_loop.clone());
                let small = scenario_export::export_scenario(&small);
                panic!(
                    "{kind} has no scenario file yet:\n{small}\n{:?}",
                    found_loop.cluster_model
                );
            }
            *found.entry(kind).or_default() += 1;
        }
    }
    println!("{found:#?}");
    assert!(!found.is_empty());
}

#[test]
fn recorded_loop_kinds_have_scenario_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/loops");
    for (kind, file) in RECORDED_LOOPS {
        let path = folder.join(format!("{file}.yaml"));
        assert!(path.is_file(), "{kind}: {}", path.display());
    }
}

/// Runs until quiescence; returns the violated property, if there is one.
fn violation(run: &mut LoopRun) -> Option<String> {
    while !run.is_quiescent() {
        run.run_cycle();
        if let Err(e) = check_all_limits(&run.tree()) {
            return Some(format!("limits exceeded: {e}"));
        }
        if run.cycles.len() > QUIESCENCE_CYCLES_MAX {
            return Some("not quiescent".to_owned());
        }
    }
    let used = usage(&run.tree());
    (run.live.usage() != used).then(|| "wrong usage".to_owned())
}

/// The smallest scenario that violates a property, or the run itself if no smaller one is found.
fn smallest_violation(run: &LoopRun) -> String {
    let shown = |run: &LoopRun, what: &str| {
        let story = Loop {
            pace: run.pace,
            start: run.start.clone(),
            lead_in: Vec::new(),
            cluster_model: run.cluster_model.clone(),
            cycles: run.cycles.iter().take(12).cloned().collect(),
        };
        format!("{what}\n{}", scenario_export::export_scenario(&story))
    };
    let again = |cluster_model: &ClusterModel, pace| {
        check_all_limits(&Tree::new(cluster_model)).ok()?;
        let mut run = LoopRun::new(cluster_model, &[], pace);
        let what = violation(&mut run)?;
        Some(shown(&run, &what))
    };
    let mut together = run.start.clone();
    let late = run.arrived.iter().map(|it| (it.name.clone(), it.clone()));
    together.workloads.extend(late);
    let small = [&together, &run.cluster_model]
        .into_iter()
        .find_map(|it| shrink::smallest(it, run.pace, again));
    small.unwrap_or_else(|| format!("{:?}\n{:?}\n{:#?}", run.start, run.arrived, run.cycles))
}

#[test]
fn damping_on_random_clusters_reaches_quiescence_within_limits() {
    let mut preemptions = 0;
    for stage in setups(GeneratorOptions::ANY, Damping::On) {
        let mut run = stage.run();
        if let Some(what) = violation(&mut run) {
            panic!("{what}: {}", smallest_violation(&run));
        }
        preemptions += run.preemptions();
    }
    assert!(preemptions > 100, "{preemptions}");
}

#[test]
fn strict_priority_policies_have_no_preemption_loop() {
    let kind = GeneratorOptions {
        is_fair: Some(false),
        is_strict: true,
        ..GeneratorOptions::ANY
    };
    let from_env = number_from_env("LOCKKEEPER_STEPS");
    let mut tapes = tapes(from_env.is_some());
    let (mut steps, mut preemptions) = (0, 0);
    while steps < from_env.unwrap_or(STEPS) {
        let mut stage = LoopSetup::from_tape(&tapes.next().unwrap(), kind, Damping::Off);
        for queue in stage.cluster_model.queues.values_mut() {
            queue.preemption.borrow_within_cohort = BorrowWithinCohort::Never;
        }
        let mut run = stage.run();
        while !run.is_quiescent() {
            run.run_cycle();
            assert!(
                !run.has_repeated(),
                "{:?}\n{:#?}",
                stage.cluster_model,
                run.cycles
            );
        }
        steps += u64::try_from(run.cycles.len()).unwrap();
        preemptions += run.preemptions();
    }
    println!("{steps} steps, {preemptions} preemptions");
    assert!(preemptions > 100, "{preemptions}");
}
