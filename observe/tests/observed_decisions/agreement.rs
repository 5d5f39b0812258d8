//! Without a mutation, no decision differs.

use crate::simulated_kueue::{Mutation, simulate};

/// A few decisions of such dense worlds have no state that the objects show: two cycles and a release within one second.
#[test]
fn late_writes_and_lagging_views_make_no_difference() {
    let (mut compared, mut different) = (0, 0);
    for seed in 0..48 {
        let report = simulate(seed, 120, Mutation::None).report;
        compared += report.admissions.agreed + report.preemptions.agreed;
        different += report.differences.len() as u64;
        assert!(report.differences.len() <= 1, "{:#?}", report.differences);
        assert_eq!(report.waiting, 0);
    }
    assert!(compared > 5_000, "{compared}");
    assert!(different <= 1, "{different} of {compared}");
}

#[test]
fn preemptions_are_compared() {
    let reports = (0..12).map(|seed| simulate(seed, 120, Mutation::None).report);
    let preemptions: u64 = reports.map(|it| it.preemptions.agreed).sum();
    assert!(preemptions >= 20, "{preemptions}");
}
