//! The incremental `State` against the plain reference, over random events.

use crate::model::dice::{asked_cases, check, tapes};
use crate::model::events::{Answers, Both};
use crate::model::generate::Kind;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// Cases without a wish from outside.
const CASES: u32 = 1000;

/// What has to be among the decisions, or the worlds are too tame.
const KINDS: &[&str] = &[
    "Admit",
    "DeferredFit",
    "FailedAfterNomination Active",
    "InClusterQueue",
    "InCohortFairSharing",
    "InCohortReclaimWhileBorrowing",
    "InCohortReclamation",
    "NoCandidates",
    "NoFit",
    "NoFit Active",
    "NoFit Parked",
    "PendingPreemption Active",
    "Preempt",
    "PreemptionNoCandidates Active",
    "PreemptionNoCandidates Parked",
    "Skip(BorrowingGate)",
    "Skip(NoLongerFits)",
    "Skip(OverlappingVictims)",
    "out of scope",
    "recomputed",
    "sticky",
];

/// Fails where the two have answered differently.
fn same<T: Debug>(both: &Both, what: &str, answers: &Answers<T>) -> TestCaseResult {
    if let Answers::Differ { live, plain } = answers {
        let story = both.story.join("\n");
        return Err(TestCaseError::fail(format!(
            "{story}\n{what} differs\n state     {live:#?}\n reference {plain:#?}"
        )));
    }
    Ok(())
}

#[test]
fn the_state_decides_as_the_plain_reference() {
    let seen = RefCell::new(BTreeSet::new());
    check(CASES, &tapes(24), |tapes| {
        let mut both = Both::new(&tapes.world, Kind::ANY);
        for tape in &tapes.events {
            let answers = both.step(tape);
            same(&both, "the cycle", &answers)?;
            let answers = both.ask();
            same(&both, "a nomination", &answers)?;
            let answers = both.search(&tape[14..]);
            same(&both, "a search", &answers)?;
            let answers = both.usage();
            same(&both, "the usage", &answers)?;
            same(&both, "the place of a workload", &both.places())?;
        }
        seen.borrow_mut().append(&mut both.seen);
        Ok(())
    });
    let seen = seen.into_inner();
    if asked_cases().is_none() {
        assert_eq!(seen.iter().collect::<Vec<_>>(), KINDS);
    }
}
