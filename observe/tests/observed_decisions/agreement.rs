//! Without a mutation, no decision differs.
//!
//! `LOCKKEEPER_SEEDS` is the number of worlds, `LOCKKEEPER_FIRST_SEED` the first seed. `just nightly` runs 10,000.

use crate::simulated_kueue::{Outcome, simulate};

/// The default number of worlds, which takes ten seconds.
const SEEDS: u64 = 24;

#[test]
fn late_writes_and_lagging_views_make_no_difference() {
    let first = env_number("LOCKKEEPER_FIRST_SEED").unwrap_or_default();
    let seeds = env_number("LOCKKEEPER_SEEDS").unwrap_or(SEEDS);
    let (mut compared, mut preempted, mut different) = (0, 0, Vec::new());
    for seed in first..first + seeds {
        // One world in four has no cohorts.
        let Outcome { report, .. } = simulate(seed, !seed.is_multiple_of(4));
        compared += report.admissions.agreed + report.preemptions.agreed;
        preempted += report.preemptions.agreed;
        assert_eq!(report.waiting, 0, "seed {seed}");
        if !report.differences.is_empty() {
            different.push((seed, report.differences));
        }
    }
    println!("{compared} decisions, {preempted} of them preemptions");
    assert!(different.is_empty(), "{different:#?}");
    assert!(compared > 100 * seeds, "{compared}");
    assert!(preempted > 5 * seeds, "{preempted}");
}

/// Worlds in which the comparison was wrong: changes of the same second in another order than their decisions, several
/// decisions on a workload in one second, and flavors that a workload has tried before.
#[test]
fn known_worlds_make_no_difference() {
    check_worlds(&[841, 1158, 1353, 1663, 2280], true);
    check_worlds(&[298, 305, 518, 1794], false);
}

/// Worlds with several preemptions for one workload: in consecutive cycles, or after it or a victim was admitted again.
#[test]
fn repeated_preemptions_make_no_difference() {
    check_worlds(
        &[1338, 2377, 2811, 2887, 3607, 4050, 4070, 4315, 5062],
        true,
    );
}

/// Worlds in which a preemptor waits for the victims of another, or comes first no more because another one does.
#[test]
fn preemptors_that_wait_for_others_victims_make_no_difference() {
    check_worlds(&[2518, 3873], true);
}

/// A world with victims that were admitted in the same cycle as others.
#[test]
fn victims_before_other_admissions_of_a_second_make_no_difference() {
    check_worlds(&[3594], true);
}

#[track_caller]
fn check_worlds(seeds: &[u64], has_cohorts: bool) {
    for seed in seeds {
        let Outcome { report, .. } = simulate(*seed, has_cohorts);
        let differences = report.differences;
        assert!(differences.is_empty(), "seed {seed}: {differences:#?}");
    }
}

pub fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
