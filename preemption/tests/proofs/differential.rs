//! The incremental `State` against the plain reference, over random events.

use crate::model::choices::{cases_from_env, check, tapes};
use crate::model::events::{ComparedAnswers, Comparison};
use crate::model::generate::GeneratorOptions;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;

/// The number of cases, unless the environment sets another one.
const CASES: u32 = 1000;

/// Kinds of decisions that must occur; otherwise the random clusters are too simple.
const REQUIRED_KINDS: &[&str] = &[
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
    "NoFit Inadmissible",
    "PendingPreemption Active",
    "Preempt",
    "PreemptionNoCandidates Active",
    "PreemptionNoCandidates Inadmissible",
    "Skip(BorrowingGate)",
    "Skip(NoLongerFits)",
    "Skip(OverlappingVictims)",
    "out of scope",
    "recomputed",
    "sticky",
];

/// Fails if the two decisions differ.
fn check_same<T: Debug>(
    both: &Comparison,
    what: &str,
    answers: &ComparedAnswers<T>,
) -> TestCaseResult {
    if let ComparedAnswers::Differ {
        live,
        reference: plain,
    } = answers
    {
        let story = both.event_log.join("\n");
        return Err(TestCaseError::fail(format!(
            "{story}\n{what} differs\n state     {live:#?}\n reference {plain:#?}"
        )));
    }
    Ok(())
}

#[test]
fn state_decisions_match_the_reference() {
    let kinds = RefCell::new(BTreeSet::new());
    check(CASES, &tapes(24), |tapes| {
        let mut both = Comparison::new(&tapes.cluster_model, GeneratorOptions::ANY);
        for tape in &tapes.events {
            let answers = both.step(tape);
            check_same(&both, "the cycle", &answers)?;
            let answers = both.compare_nominations();
            check_same(&both, "a nomination", &answers)?;
            let answers = both.compare_search(&tape[14..]);
            check_same(&both, "a search", &answers)?;
            let answers = both.compare_usage();
            check_same(&both, "the usage", &answers)?;
            check_same(
                &both,
                "the place of a workload",
                &both.compare_queue_contents(),
            )?;
        }
        kinds.borrow_mut().append(&mut both.compared_kinds);
        Ok(())
    });
    let kinds = kinds.into_inner();
    if cases_from_env().is_none() {
        assert_eq!(kinds.iter().collect::<Vec<_>>(), REQUIRED_KINDS);
    }
}
