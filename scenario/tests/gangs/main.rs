//! Scenarios of pods and gangs: explanations and rejected scenarios.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod explanation;
mod validation;

use lockkeeper_preemption::gang::SchedulerCompatibility;
use lockkeeper_scenario::gang::{
    GangError, GangScenario, LoadedGangScenario, ScenarioAnswer, evaluate, load, options,
};

/// A scenario in YAML, and its explanation.
fn evaluate_yaml(
    yaml: &str,
    compatibility: Option<SchedulerCompatibility>,
) -> (LoadedGangScenario, ScenarioAnswer) {
    let scenario: GangScenario = serde_saphyr::from_str(yaml).unwrap();
    let loaded = load(&scenario, options(&scenario, compatibility)).unwrap();
    let answer = evaluate(&scenario, &loaded);
    (loaded, answer)
}

fn error(yaml: &str) -> GangError {
    let scenario: GangScenario = serde_saphyr::from_str(yaml).unwrap();
    load(&scenario, options(&scenario, None)).unwrap_err()
}
