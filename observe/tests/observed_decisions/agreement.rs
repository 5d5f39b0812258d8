//! Without a mutation, no decision differs.

use crate::simulated_kueue::{Mutation, simulate};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn late_writes_and_lagging_views_make_no_difference(seed in any::<u64>()) {
        let outcome = simulate(seed, 120, Mutation::None);
        let report = &outcome.report;
        prop_assert!(report.differences.is_empty(), "{:#?}", report.differences);
        prop_assert!(report.admissions.agreed >= 60, "{report:?}");
        prop_assert_eq!(report.waiting, 0);
    }
}

#[test]
fn preemptions_are_compared() {
    let reports = (0..12).map(|seed| simulate(seed, 120, Mutation::None).report);
    let preemptions: u64 = reports.map(|it| it.preemptions.agreed).sum();
    assert!(preemptions >= 20, "{preemptions}");
}

#[test]
fn debug_rates() {
    let (mut agreed, mut different, mut worlds) = (0, 0, 0);
    for seed in 0..60 {
        let report = simulate(seed, 120, Mutation::None).report;
        agreed += report.admissions.agreed + report.preemptions.agreed;
        different += report.differences.len();
        worlds += usize::from(!report.differences.is_empty());
        for it in &report.differences { eprintln!("{seed} {it:?}"); }
    }
    eprintln!("agreed {agreed} different {different} worlds {worlds}");
}
