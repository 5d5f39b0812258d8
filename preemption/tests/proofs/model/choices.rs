//! Choices made from bytes: proptest shrinks the bytes, and zero is always the simplest choice.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use std::fmt;

/// Enough choices for the largest cluster.
pub const MODEL_BYTES: usize = 500;

/// A tape of choices; after its end every choice is the first one.
pub struct Choices<'a> {
    tape: &'a [u8],
}

impl<'a> Choices<'a> {
    pub fn new(tape: &'a [u8]) -> Self {
        Self { tape }
    }

    pub fn below(&mut self, limit: usize) -> usize {
        let Some((first, rest)) = self.tape.split_first() else {
            return 0;
        };
        self.tape = rest;
        usize::from(*first) % limit
    }

    /// An amount from `least` to `most`.
    pub fn amount(&mut self, least: i64, most: i64) -> i64 {
        let span = usize::try_from(most - least + 1).unwrap();
        least + i64::try_from(self.below(span)).unwrap()
    }

    pub fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == odds - 1
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// The input of a run: a cluster, and events.
#[derive(Clone)]
pub struct Tapes {
    pub cluster_model: Vec<u8>,
    pub events: Vec<Vec<u8>>,
}

impl fmt::Debug for Tapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The event log of the failure decodes them.
        write!(f, "{} events", self.events.len())
    }
}

/// Tapes with at most this number of events.
pub fn tapes(events_max: usize) -> impl Strategy<Value = Tapes> {
    let event = vec(any::<u8>(), 28);
    (vec(any::<u8>(), MODEL_BYTES), vec(event, 1..=events_max)).prop_map(
        |(cluster_model, events)| Tapes {
            cluster_model,
            events,
        },
    )
}

/// Runs a property on this number of cases, the same ones in each run. `LOCKKEEPER_PROPTEST_CASES` sets another number:
/// more are different cases, fewer are the first of the same ones.
pub fn check<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> TestCaseResult) {
    let from_env = cases_from_env();
    let config = Config {
        cases: from_env.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: number_from_env("LOCKKEEPER_SHRINK_STEPS")
            .map_or(20_000, |it| u32::try_from(it).unwrap()),
        ..Config::default()
    };
    let mut runner = match from_env {
        Some(from_env) if from_env > cases => TestRunner::new(config),
        _ => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    if let Err(e) = runner.run(strategy, test) {
        panic!("{e}");
    }
}

/// The number of cases that the environment sets.
pub fn cases_from_env() -> Option<u32> {
    let value = number_from_env("LOCKKEEPER_PROPTEST_CASES")?;
    Some(u32::try_from(value).expect("a number of cases"))
}

/// A number from the environment.
#[allow(
    clippy::disallowed_methods,
    reason = "only the core must not read the environment; its tests may"
)]
pub fn number_from_env(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().expect(variable))
}
