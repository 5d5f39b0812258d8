//! Each mutation of the scheduler is found.

use crate::simulated_kueue::{Mutation, Outcome, simulate};

/// The sums of many worlds: differences of admissions, of preemptions and missing decisions, and mutated decisions.
fn sums(mutation: Mutation) -> [u64; 4] {
    let mut sums = [0; 4];
    for seed in 0..8 {
        let Outcome { report, mutated } = simulate(seed, 120, mutation);
        sums[0] += report.admissions.different;
        sums[1] += report.preemptions.different;
        sums[2] += report.missing.different;
        sums[3] += mutated;
    }
    sums
}

#[test]
fn other_flavors_are_differences() {
    let [admissions, _, _, mutated] = sums(Mutation::OtherFlavor);
    assert!(mutated > 100, "{mutated}");
    // The others are right on a state of the last seconds, in which a cycle with preemptions may have begun.
    assert!(admissions * 4 >= mutated * 3, "{admissions} of {mutated}");
}

#[test]
fn other_victims_are_differences() {
    let [_, preemptions, _, mutated] = sums(Mutation::OtherVictim);
    assert!(mutated > 20, "{mutated}");
    assert!(preemptions * 2 >= mutated, "{preemptions} of {mutated}");
}

#[test]
fn other_reasons_are_differences() {
    let [_, preemptions, _, mutated] = sums(Mutation::OtherReason);
    assert!(mutated > 20, "{mutated}");
    assert!(preemptions * 2 >= mutated, "{preemptions} of {mutated}");
}

#[test]
fn other_order_is_found() {
    let [admissions, ..] = sums(Mutation::LowestPriorityFirst);
    assert!(admissions >= 8, "{admissions}");
}

#[test]
fn queue_without_decisions_is_found() {
    let [_, _, missing, mutated] = sums(Mutation::IdleQueue);
    assert!(mutated > 0);
    assert!(missing >= 4, "{missing} of {mutated}");
}
