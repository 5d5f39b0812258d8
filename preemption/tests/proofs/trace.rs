//! Checks that a trace agrees with its decision.

use crate::model::live::LiveState;
use crate::model::named_decisions::{NamedNomination, NamedVictim};
use lockkeeper_preemption::{CandidateVerdict, Mode, Step, Trace, WorkloadId};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// One search for victims, as the trace records it.
#[derive(Debug, Default)]
struct SearchTrace {
    /// With partial admission: the number of pods of each pod set.
    counts: Option<Vec<i64>>,
    attempts: usize,
    may_borrow: Option<bool>,
    /// Victims that were not reprieved, in the last attempt.
    selected: Vec<NamedVictim>,
    /// The result of the search, if it ended.
    found: Option<bool>,
}

/// The search that determined the decision: the last one with the same number of pods.
fn decisive(searches: Vec<SearchTrace>, nominated: &NamedNomination) -> Option<SearchTrace> {
    let pod_sets = nominated.plan.pod_sets.iter();
    let counts: Vec<i64> = pod_sets.map(|it| it.count).collect();
    let has_fewer = searches
        .iter()
        .any(|it| it.counts.as_ref() == Some(&counts));
    let has_counts = |search: &SearchTrace| match &search.counts {
        Some(fewer) => *fewer == counts,
        None => !has_fewer,
    };
    searches.into_iter().rfind(has_counts)
}

/// Whether the victims were found while the preemptor might borrow.
pub fn may_borrow(live: &LiveState, trace: &Trace, nominated: &NamedNomination) -> Option<bool> {
    decisive(searches(live, trace).ok()?, nominated)?.may_borrow
}

/// Reads all searches; every step must be in a valid position.
fn searches(live: &LiveState, trace: &Trace) -> Result<Vec<SearchTrace>, TestCaseError> {
    let mut all: Vec<SearchTrace> = Vec::new();
    let mut open: Option<SearchTrace> = None;
    let mut counts = None;
    for step in trace.steps() {
        if let Step::Search { .. } = step {
            prop_assert!(open.is_none(), "nested search");
            open = Some(SearchTrace {
                counts: counts.clone(),
                ..SearchTrace::default()
            });
            continue;
        }
        let Some(search) = &mut open else {
            if let Step::FewerPods { counts: fewer } = step {
                counts = Some(fewer.clone());
                continue;
            }
            let is_known = matches!(step, Step::Flavor { .. } | Step::ResourceNotCovered { .. });
            prop_assert!(is_known, "{step:?} outside a search");
            continue;
        };
        match step {
            Step::Attempt { may_borrow } => {
                search.attempts += 1;
                search.may_borrow = Some(*may_borrow);
                search.selected.clear();
            }
            Step::Candidate {
                workload,
                reason,
                verdict,
            } => {
                prop_assert!(search.attempts > 0);
                if *verdict == CandidateVerdict::Selected {
                    let name = live.name(*workload);
                    let is_new = search.selected.iter().all(|(it, _)| *it != name);
                    prop_assert!(is_new, "{} is taken twice", name);
                    search.selected.push((name, *reason));
                }
            }
            Step::Queue { .. } => prop_assert!(search.attempts > 0),
            Step::FilledBack { workload } => fill_back(live, search, *workload)?,
            Step::CannotSucceed | Step::SearchEnded { .. } => {
                let is_vain = *step == Step::CannotSucceed;
                prop_assert!(!is_vain || search.attempts == 0);
                search.found = Some(*step == Step::SearchEnded { found: true });
                all.extend(open.take());
            }
            other => return Err(TestCaseError::fail(format!("{other:?} in a search"))),
        }
    }
    prop_assert!(open.is_none(), "search without an end step");
    Ok(all)
}

fn fill_back(live: &LiveState, search: &mut SearchTrace, workload: WorkloadId) -> TestCaseResult {
    let name = live.name(workload);
    let last = search.selected.last().map(|(it, _)| it.clone());
    prop_assert_ne!(Some(&name), last.as_ref(), "the last victim is needed");
    let before = search.selected.len();
    search.selected.retain(|(it, _)| *it != name);
    prop_assert_eq!(search.selected.len() + 1, before, "{} was not taken", name);
    Ok(())
}

/// The victims are the ones selected and not reprieved; a search without victims must record this.
pub fn check_trace(live: &LiveState, trace: &Trace, nominated: &NamedNomination) -> TestCaseResult {
    let searches = searches(live, trace)?;
    for search in &searches {
        let found = search.found == Some(true);
        prop_assert!(!found || !search.selected.is_empty());
    }
    if nominated.plan.mode == Mode::Preempt {
        let last = decisive(searches, nominated);
        prop_assert!(last.is_some(), "no search");
        let Some(last) = last else { return Ok(()) };
        if nominated.victims.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(last.found, Some(true));
        let mut selected = last.selected.clone();
        let mut victims = nominated.victims.clone();
        selected.sort();
        victims.sort();
        prop_assert_eq!(selected, victims);
    }
    let flavors = trace.steps().iter();
    let flavors = flavors
        .filter(|it| matches!(it, Step::Flavor { .. }))
        .count();
    let pod_sets = nominated.plan.pod_sets.iter();
    let expected = pod_sets.filter(|it| !it.flavors.is_empty()).count();
    prop_assert!(
        flavors >= expected,
        "the trace lacks a flavor of the decision"
    );
    Ok(())
}
