//! The incremental `State` against the plain reference, over random events.

use crate::model::dice::{check, tapes};
use crate::model::events::{Answers, Both};
use crate::model::generate::Kind;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::fmt::Debug;

/// Cases without a wish from outside.
const CASES: u32 = 300;

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
        Ok(())
    });
}
