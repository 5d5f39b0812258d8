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
mod shrink;
mod written;

use crate::model::dice::{Dice, WORLD_BYTES, asked};
use crate::model::generate::{self, Kind};
use crate::model::world::{COHORTS, Pods, Workload, World};
use crate::plain::scheduler::usage;
use crate::plain::tree::Tree;
use crate::properties::within_all_limits;
use kind::kinds;
use lockkeeper_preemption::{
    BorrowWithinCohort, Compatibility, Damping, Options, ReclaimWithinCohort,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use run::{Loop, Pace, Run};
use std::collections::BTreeMap;
use std::path::Path;

/// Rounds after which a small world that has not come back will not.
const ROUNDS_MAX: usize = 40;

/// Rounds after which a small world rests, if it ever does.
const REST_ROUNDS_MAX: usize = 400;

/// Worlds without a wish from outside.
const WORLDS: u64 = 1500;

/// Steps without a wish from outside.
const STEPS: u64 = 30_000;

/// The kinds that were found, and the scenarios that show them.
const KEPT: &[(&str, &str)] = &[
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
struct Stage {
    world: World,
    /// Who comes later.
    late: Vec<Workload>,
    pace: Pace,
}

impl Stage {
    fn of(tape: &[u8], kind: Kind, damping: Damping) -> Self {
        let mut dice = Dice::of(tape);
        let pace = dice.pick(&[Pace::AtOnce, Pace::OneARound]);
        let mut world = generate::duel(&mut dice, kind);
        if dice.one_in(2) {
            make_scarce(&mut dice, &mut world, kind);
        }
        world.options = Options {
            algorithm: world.options.algorithm,
            compatibility: Compatibility::Lockkeeper,
            damping,
            ..Options::default()
        };
        let mut late = Vec::new();
        for name in world.names(false) {
            if dice.one_in(2) {
                late.extend(world.workloads.remove(&name));
            }
        }
        if dice.one_in(2) {
            // There is more to take when the important ones come last.
            late.sort_by_key(|it| it.priority);
        }
        Self { world, late, pace }
    }

    fn run(&self) -> Run {
        Run::of(&self.world, &self.late, self.pace)
    }
}

/// Less of everything, and more ways to take it from each other.
fn make_scarce(dice: &mut Dice<'_>, world: &mut World, kind: Kind) {
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
            least: None,
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
fn worlds(kind: Kind, damping: Damping) -> impl Iterator<Item = Stage> {
    let asked = asked("LOCKKEEPER_LOOP_WORLDS");
    let count = usize::try_from(asked.unwrap_or(WORLDS)).unwrap();
    let tapes = tapes(asked.is_some()).take(count);
    tapes.map(move |tape| Stage::of(&tape, kind, damping))
}

#[test]
fn every_loop_is_of_a_kept_kind() {
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    for stage in worlds(Kind::ANY, Damping::Off) {
        let Some(it) = stage.run().find_loop(ROUNDS_MAX) else {
            continue;
        };
        for kind in kinds(&it) {
            if KEPT.iter().all(|(kept, _)| *kept != kind) {
                let small = shrink::shrink(&it).unwrap_or_else(|| it.clone());
                let small = written::written(&small);
                panic!("{kind} is not kept yet:\n{small}\n{:?}", it.world);
            }
            *found.entry(kind).or_default() += 1;
        }
    }
    println!("{found:#?}");
    assert!(!found.is_empty());
}

#[test]
fn every_kind_has_a_scenario() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/loops");
    for (kind, file) in KEPT {
        let path = folder.join(format!("{file}.yaml"));
        assert!(path.is_file(), "{kind}: {}", path.display());
    }
}

/// What is wrong with a run that ends now, if anything is.
fn wrong(run: &mut Run) -> Option<String> {
    while !run.is_at_rest() {
        run.round();
        if let Err(e) = within_all_limits(&run.tree()) {
            return Some(format!("beyond the limits: {e}"));
        }
        if run.rounds.len() > REST_ROUNDS_MAX {
            return Some("it does not come to rest".to_owned());
        }
    }
    let used = usage(&run.tree());
    (run.live.usage() != used).then(|| "the usage is wrong".to_owned())
}

/// The smallest scenario in which something is wrong, or else the run as it is.
fn smallest_wrong(run: &Run) -> String {
    let shown = |run: &Run, what: &str| {
        let story = Loop {
            pace: run.pace,
            start: run.start.clone(),
            lead: Vec::new(),
            world: run.world.clone(),
            rounds: run.rounds.iter().take(12).cloned().collect(),
        };
        format!("{what}\n{}", written::written(&story))
    };
    let again = |world: &World, pace| {
        within_all_limits(&Tree::of(world)).ok()?;
        let mut run = Run::of(world, &[], pace);
        let what = wrong(&mut run)?;
        Some(shown(&run, &what))
    };
    let mut together = run.start.clone();
    let late = run.arrived.iter().map(|it| (it.name.clone(), it.clone()));
    together.workloads.extend(late);
    let small = [&together, &run.world]
        .into_iter()
        .find_map(|it| shrink::smallest(it, run.pace, again));
    small.unwrap_or_else(|| format!("{:?}\n{:?}\n{:#?}", run.start, run.arrived, run.rounds))
}

#[test]
fn with_damping_every_world_comes_to_rest_within_its_limits() {
    let mut preemptions = 0;
    for stage in worlds(Kind::ANY, Damping::On) {
        let mut run = stage.run();
        if let Some(what) = wrong(&mut run) {
            panic!("{what}: {}", smallest_wrong(&run));
        }
        preemptions += run.preemptions();
    }
    assert!(preemptions > 100, "{preemptions}");
}

#[test]
fn no_state_returns_where_only_lower_priorities_are_taken() {
    let kind = Kind {
        is_fair: Some(false),
        is_strict: true,
        ..Kind::ANY
    };
    let asked = asked("LOCKKEEPER_STEPS");
    let mut tapes = tapes(asked.is_some());
    let (mut steps, mut preemptions) = (0, 0);
    while steps < asked.unwrap_or(STEPS) {
        let mut stage = Stage::of(&tapes.next().unwrap(), kind, Damping::Off);
        for queue in stage.world.queues.values_mut() {
            queue.preemption.borrow_within_cohort = BorrowWithinCohort::Never;
        }
        let mut run = stage.run();
        while !run.is_at_rest() {
            run.round();
            assert!(!run.has_returned(), "{:?}\n{:#?}", stage.world, run.rounds);
        }
        steps += u64::try_from(run.rounds.len()).unwrap();
        preemptions += run.preemptions();
    }
    println!("{steps} steps, {preemptions} preemptions");
    assert!(preemptions > 100, "{preemptions}");
}
