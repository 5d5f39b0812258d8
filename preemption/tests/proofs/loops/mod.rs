//! Loops: preempted, admitted again, preempted again, for ever.
//!
//! Where a preemptor may take only lower priorities, and never while it borrows, there is none. Otherwise
//! Kueue's rules allow some, and so do ours; each kind that was ever found is kept as a scenario in
//! `tests/conformance/loops`, where its README says why it turns.

mod kind;
mod run;
mod shrink;
mod written;

use crate::model::dice::{Dice, WORLD_BYTES};
use crate::model::generate::{self, Kind};
use crate::model::world::World;
use kind::kind;
use lockkeeper_preemption::{Compatibility, Damping, Options};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use run::{Loop, Pace};
use std::collections::BTreeMap;
use std::path::Path;

/// Rounds after which a small world that has not come back will not.
const ROUNDS_MAX: usize = 40;

/// Worlds without a wish from outside.
const WORLDS: u32 = 1500;

/// The kinds that were found, and the scenarios that show them.
const KEPT: &[(&str, &str)] = &[];

/// What ends of one random world, if it is a loop.
fn any_loop(tape: &[u8], kind: Kind) -> Option<Loop> {
    let mut dice = Dice::of(tape);
    let pace = dice.pick(&[Pace::AtOnce, Pace::OneARound]);
    let mut world = generate::duel(&mut dice, kind);
    if dice.one_in(2) {
        make_scarce(&mut dice, &mut world);
    }
    world.options = Options {
        algorithm: world.options.algorithm,
        compatibility: Compatibility::Lockkeeper,
        damping: Damping::Off,
        ..Options::default()
    };
    let mut late = Vec::new();
    for name in world.names(false) {
        if dice.one_in(2) {
            late.extend(world.workloads.remove(&name));
        }
    }
    run::find(&world, &late, pace, ROUNDS_MAX)
}

/// Less of everything, so that they are in each other's way.
fn make_scarce(dice: &mut Dice<'_>, world: &mut World) {
    for queue in world.queues.values_mut() {
        let flavors = queue.groups.iter_mut().flat_map(|it| &mut it.flavors);
        for limits in flavors.flat_map(|(_, limits)| limits) {
            limits.nominal = dice.amount(0, 4);
            if dice.one_in(2) {
                limits.borrowing = None;
                limits.lending = None;
            }
        }
        if dice.one_in(2) {
            queue.weight = 1.0;
        }
    }
    for workload in world.workloads.values_mut() {
        for (_, amount) in &mut workload.pods[0].requests {
            *amount = dice.amount(1, 4);
        }
    }
}

/// The tapes of so many worlds, always the same.
fn tapes(count: u32, seed: u8) -> impl Iterator<Item = Vec<u8>> {
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    (0..count).map(move |_| {
        let mut tape = vec![0; WORLD_BYTES];
        rng.fill_bytes(&mut tape);
        tape
    })
}

#[test]
fn explore() {
    let count: u32 = std::env::var("N").map_or(2000, |it| it.parse().unwrap());
    let seed: u8 = std::env::var("SEED").map_or(0, |it| it.parse().unwrap());
    let mut kinds: BTreeMap<String, (usize, Loop, u32)> = BTreeMap::new();
    for tape in tapes(count, seed) {
        let Some(found) = any_loop(&tape, Kind::ANY) else {
            continue;
        };
        let kind = kind(&found);
        let n = kinds.get(&kind).map_or(0, |it| it.2);
        if n > 20 {
            continue;
        }
        if let Some(small) = shrink::shrink(&found) {
            let size = written::written(&small).len();
            let best = kinds.entry(kind).or_insert_with(|| (size, small.clone(), 0));
            best.2 += 1;
            if size < best.0 {
                best.0 = size;
                best.1 = small;
            }
        }
    }
    for (at, (k, (_, found, n))) in kinds.iter().enumerate() {
        println!("== {k}: {n}");
        println!("{}", written::written(found));
        std::fs::write(format!("/tmp/w/found-{seed}-{at}.yaml"), format!("# {k}\n{}", written::written(found))).unwrap();
    }
}
