//! Without a mutation, no decision differs.
//!
//! `LOCKKEEPER_SEEDS` is the number of worlds, `LOCKKEEPER_FIRST_SEED` the first seed.

use crate::simulated_kueue::{Mutation, Outcome, simulate, simulate_world};

/// The default number of worlds.
const SEEDS: u64 = 24;

#[test]
fn late_writes_and_lagging_views_make_no_difference() {
    let first = env_number("LOCKKEEPER_FIRST_SEED").unwrap_or_default();
    let seeds = env_number("LOCKKEEPER_SEEDS").unwrap_or(SEEDS);
    let (mut compared, mut preempted, mut different) = (0, 0, Vec::new());
    for seed in first..first + seeds {
        let Outcome { report, .. } = simulate(seed, Mutation::None);
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
/// decisions on a workload in one second, preemptors that wait for the victims of others, and flavors that a workload has
/// tried before.
#[test]
fn known_worlds_make_no_difference() {
    let without_cohorts = [298, 305, 518, 585, 841, 913, 1158, 1661, 1794, 2280];
    let with_cohorts = [14, 16, 31, 32, 39, 44, 57, 95, 98, 99, 354, 405];
    let worlds = without_cohorts.map(|it| (it, false)).into_iter();
    for (seed, has_cohorts) in worlds.chain(with_cohorts.map(|it| (it, true))) {
        let Outcome { report, .. } = simulate_world(seed, has_cohorts, Mutation::None);
        let differences = report.differences;
        assert!(differences.is_empty(), "seed {seed}: {differences:#?}");
    }
}

fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
