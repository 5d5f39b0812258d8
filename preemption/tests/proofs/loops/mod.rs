//! Loops: preempted, admitted again, preempted again, for ever.
//!
//! Where a preemptor may take lower priorities only, and nobody while it borrows, there is none. Otherwise
//! Kueue's rules allow some, and so do ours without damping. A scenario of each kind that was ever found is
//! kept in `tests/conformance/loops`, where its README says why it turns.
//!
//! `LOCKKEEPER_LOOP_WORLDS` asks for other worlds than the usual ones, and how many; `LOCKKEEPER_STEPS` for a
//! longer run.

mod kind;
mod run;
mod scenario_export;
mod shrink;

use crate::model::choices::{Choices, WORLD_BYTES, number_from_env};
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

/// Rounds after which a small world that has not come back will not.
const CYCLES_MAX: usize = 40;

/// Rounds after which a small world rests, if it ever does.
const QUIESCENCE_CYCLES_MAX: usize = 400;

/// Worlds without a wish from outside.
const WORLDS: u64 = 1500;

/// Steps without a wish from outside.
const STEPS: u64 = 30_000;

/// The kinds that were found, and the scenarios that show them.
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

/// Where something goes round, or does not.
struct LoopSetup {
    world: ClusterModel,
    /// Who comes later.
    later_arrivals: Vec<Workload>,
    pace: EvictionPace,
}

impl LoopSetup {
    fn from_tape(tape: &[u8], kind: GeneratorOptions, damping: Damping) -> Self {
        let mut dice = Choices::new(tape);
        let pace = dice.pick(&[EvictionPace::Immediate, EvictionPace::OnePerCycle]);
        let mut world = generate::contended_cluster(&mut dice, kind);
        if dice.one_in(2) {
            make_scarce(&mut dice, &mut world, kind);
        }
        world.options = Options {
            algorithm: world.options.algorithm,
            compatibility: Compatibility::Lockkeeper,
            damping,
            ..Options::default()
        };
        let mut later_arrivals = Vec::new();
        for name in world.names(false) {
            if dice.one_in(2) {
                later_arrivals.extend(world.workloads.remove(&name));
            }
        }
        if dice.one_in(2) {
            // There is more to take when the important ones come last.
            later_arrivals.sort_by_key(|it| it.priority);
        }
        Self {
            world,
            later_arrivals,
            pace,
        }
    }

    fn run(&self) -> LoopRun {
        LoopRun::new(&self.world, &self.later_arrivals, self.pace)
    }
}

/// Less of everything, and more ways to take it from each other.
fn make_scarce(dice: &mut Choices<'_>, world: &mut ClusterModel, kind: GeneratorOptions) {
    let is_flat = dice.one_in(2);
    for queue in world.queues.values_mut() {
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
        let mut workload = generate::workload(dice, number, world);
        workload.is_in_scope = true;
        workload.pods.truncate(1);
        workload.pods[0] = Pods {
            count: 1,
            count_min: None,
            requests: vec![(1, 1)],
            ineligible: Vec::new(),
        };
        world.workloads.insert(workload.name.clone(), workload);
    }
    for workload in world.workloads.values_mut() {
        for (_, amount) in &mut workload.pods[0].requests {
            *amount = dice.amount(1, 5);
        }
    }
}

/// Tapes without end: always the same ones, or others if that is wished.
fn tapes(are_others: bool) -> impl Iterator<Item = Vec<u8>> {
    let mut runner = if are_others {
        TestRunner::default()
    } else {
        TestRunner::deterministic()
    };
    let mut rng = runner.new_rng();
    std::iter::repeat_with(move || {
        let mut tape = vec![0; WORLD_BYTES];
        rng.fill_bytes(&mut tape);
        tape
    })
}

/// So many worlds.
fn setups(kind: GeneratorOptions, damping: Damping) -> impl Iterator<Item = LoopSetup> {
    let asked = number_from_env("LOCKKEEPER_LOOP_WORLDS");
    let count = usize::try_from(asked.unwrap_or(WORLDS)).unwrap();
    let tapes = tapes(asked.is_some()).take(count);
    tapes.map(move |tape| LoopSetup::from_tape(&tape, kind, damping))
}

#[test]
fn found_loops_are_of_recorded_kinds() {
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    for stage in setups(GeneratorOptions::ANY, Damping::Off) {
        let Some(it) = stage.run().find_loop(CYCLES_MAX) else {
            continue;
        };
        for kind in loop_kinds(&it) {
            if RECORDED_LOOPS.iter().all(|(kept, _)| *kept != kind) {
                let small = shrink::shrink(&it).unwrap_or_else(|| it.clone());
                let small = scenario_export::export_scenario(&small);
                panic!("{kind} is not kept yet:\n{small}\n{:?}", it.world);
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

/// What is wrong with a run that ends now, if anything is.
fn violation(run: &mut LoopRun) -> Option<String> {
    while !run.is_quiescent() {
        run.run_cycle();
        if let Err(e) = check_all_limits(&run.tree()) {
            return Some(format!("beyond the limits: {e}"));
        }
        if run.cycles.len() > QUIESCENCE_CYCLES_MAX {
            return Some("it does not come to rest".to_owned());
        }
    }
    let used = usage(&run.tree());
    (run.live.usage() != used).then(|| "the usage is wrong".to_owned())
}

/// The smallest scenario in which something is wrong, or else the run as it is.
fn smallest_violation(run: &LoopRun) -> String {
    let shown = |run: &LoopRun, what: &str| {
        let story = Loop {
            pace: run.pace,
            start: run.start.clone(),
            lead_in: Vec::new(),
            world: run.world.clone(),
            cycles: run.cycles.iter().take(12).cloned().collect(),
        };
        format!("{what}\n{}", scenario_export::export_scenario(&story))
    };
    let again = |world: &ClusterModel, pace| {
        check_all_limits(&Tree::new(world)).ok()?;
        let mut run = LoopRun::new(world, &[], pace);
        let what = violation(&mut run)?;
        Some(shown(&run, &what))
    };
    let mut together = run.start.clone();
    let late = run.arrived.iter().map(|it| (it.name.clone(), it.clone()));
    together.workloads.extend(late);
    let small = [&together, &run.world]
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
    let asked = number_from_env("LOCKKEEPER_STEPS");
    let mut tapes = tapes(asked.is_some());
    let (mut steps, mut preemptions) = (0, 0);
    while steps < asked.unwrap_or(STEPS) {
        let mut stage = LoopSetup::from_tape(&tapes.next().unwrap(), kind, Damping::Off);
        for queue in stage.world.queues.values_mut() {
            queue.preemption.borrow_within_cohort = BorrowWithinCohort::Never;
        }
        let mut run = stage.run();
        while !run.is_quiescent() {
            run.run_cycle();
            assert!(!run.has_repeated(), "{:?}\n{:#?}", stage.world, run.cycles);
        }
        steps += u64::try_from(run.cycles.len()).unwrap();
        preemptions += run.preemptions();
    }
    println!("{steps} steps, {preemptions} preemptions");
    assert!(preemptions > 100, "{preemptions}");
}
