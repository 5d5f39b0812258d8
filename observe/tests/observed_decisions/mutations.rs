//! Each mutation of the scheduler is found.
//!
//! `LOCKKEEPER_MUTATED_WORKLOADS` is the number of workloads of a world. `just nightly` uses 120.

use crate::agreement::env_number;
use crate::simulated_kueue::{Mutation, Outcome, simulate_mutated};

/// The default number of workloads: each difference is compared on all states, which takes long in a busy world.
const WORKLOADS: u64 = 50;

/// The sums of some worlds: differences of admissions, of preemptions and missing decisions, and mutated decisions.
fn sums(mutation: Mutation, seeds: u64) -> [u64; 4] {
    let workloads = env_number("LOCKKEEPER_MUTATED_WORKLOADS").unwrap_or(WORKLOADS);
    let mut sums = [0; 4];
    for seed in 1..=seeds {
        let has_cohorts = !seed.is_multiple_of(4);
        let Outcome { report, mutated } = simulate_mutated(seed, has_cohorts, mutation, workloads);
        sums[0] += report.admissions.different;
        sums[1] += report.preemptions.different;
        sums[2] += report.missing.different;
        sums[3] += mutated;
    }
    sums
}

/// Nine of ten. The others are right on a state that Kueue may have had.
#[track_caller]
fn assert_found(different: u64, mutated: u64) {
    println!("{different} of {mutated}");
    assert!(different * 10 >= mutated * 9, "{different} of {mutated}");
}

#[test]
fn other_flavors_are_differences() {
    let [admissions, _, _, mutated] = sums(Mutation::OtherFlavor, 2);
    assert!(mutated > 80, "{mutated}");
    assert_found(admissions, mutated);
}

#[test]
fn other_victims_are_differences() {
    let [_, preemptions, _, mutated] = sums(Mutation::OtherVictim, 5);
    assert!(mutated > 20, "{mutated}");
    assert_found(preemptions, mutated);
}

#[test]
fn other_reasons_are_differences() {
    let [_, preemptions, _, mutated] = sums(Mutation::OtherReason, 3);
    assert!(mutated > 20, "{mutated}");
    assert_found(preemptions, mutated);
}

#[test]
fn other_order_is_found() {
    let [admissions, ..] = sums(Mutation::LowestPriorityFirst, 3);
    assert!(admissions >= 8, "{admissions}");
}

#[test]
fn queue_without_decisions_is_found() {
    let [_, _, missing, mutated] = sums(Mutation::IdleQueue, 3);
    assert!(mutated > 0);
    assert!(missing >= 4, "{missing} of {mutated}");
}
