//! Scenarios of pods and gangs: what is told of them, and what is refused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod refused;
mod told;

use lockkeeper_preemption::gang::Compatibility;
use lockkeeper_snapshot::gang::{Answer, GangError, Loaded, Scenario, answer, load, options};

/// A scenario in YAML, and what is answered to it.
fn answered(yaml: &str, compatibility: Option<Compatibility>) -> (Loaded, Answer) {
    let scenario: Scenario = serde_saphyr::from_str(yaml).unwrap();
    let loaded = load(&scenario, options(&scenario, compatibility)).unwrap();
    let answer = answer(&scenario, &loaded);
    (loaded, answer)
}

fn error(yaml: &str) -> GangError {
    let scenario: Scenario = serde_saphyr::from_str(yaml).unwrap();
    load(&scenario, options(&scenario, None)).unwrap_err()
}
