//! What holds for the decisions of all queues.

use super::bounded::BoundedInt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What holds for the decisions of all queues.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PreemptionSettings {
    /// By which rules victims are chosen.
    pub algorithm: Algorithm,
    /// What holds with `algorithm: FairSharing`.
    pub fair_sharing: FairSharing,
    /// Who may borrow in a cycle: whoever finds quota, as Kueue does today, or in a cohort nobody after
    /// a workload that needs none of it, as KEP-83 has it.
    pub borrowing_gate: BorrowingGate,
    /// Does what Kueue does also where it is wrong. Absent, what is right is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<Compatibility>,
    /// Whether quota that a preemption frees is held for its preemptor, and nobody is preempted in
    /// circles. Absent is true, unless `compatibility` says otherwise: Kueue has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damping: Option<bool>,
    /// Whether a workload that says so with `minCount` may be admitted with fewer pods.
    pub partial_admission: bool,
    /// How many workloads may be told to go in one cycle. Absent is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_victims_per_cycle: Option<BoundedInt<1, 1_048_576>>,
}

impl Default for PreemptionSettings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            fair_sharing: FairSharing::default(),
            borrowing_gate: BorrowingGate::default(),
            compatibility: None,
            damping: None,
            partial_admission: true,
            max_victims_per_cycle: None,
        }
    }
}

impl PreemptionSettings {
    /// Whether freed quota is held and circles are cut, the default filled in.
    #[must_use]
    pub fn is_damped(&self) -> bool {
        self.damping.unwrap_or(self.compatibility.is_none())
    }
}

/// By which rules victims are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Algorithm {
    /// By priority and borrowing.
    #[default]
    Classical,
    /// By dominant resource shares.
    FairSharing,
}

/// What holds with fair sharing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FairSharing {
    /// When a preemptor may take from a queue with a larger share: one of them or both, in the order in
    /// which they are tried.
    pub preemption_strategies: FairStrategies,
}

/// When a preemptor may take from a queue with a larger share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum FairStrategy {
    /// The preemptor's share with its workload is at most the other's share without the victim.
    LessThanOrEqualToFinalShare,
    /// The preemptor's share with its workload is less than the other's share as it is.
    LessThanInitialShare,
}

/// One strategy or more, none of them twice.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "Vec<FairStrategy>", into = "Vec<FairStrategy>")]
#[schemars(with = "Vec<FairStrategy>", extend("minItems" = 1, "uniqueItems" = true))]
pub struct FairStrategies(Vec<FairStrategy>);

/// A list of strategies that says nothing, or one thing twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FairStrategiesError {
    /// Then nobody could be preempted.
    #[error("the list of strategies is empty; leave it out for both")]
    Empty,
    /// The second one would have no effect.
    #[error("{0:?} stands twice in the list of strategies")]
    Twice(FairStrategy),
}

impl FairStrategies {
    /// In the order in which they are tried.
    #[must_use]
    pub fn as_slice(&self) -> &[FairStrategy] {
        &self.0
    }
}

impl Default for FairStrategies {
    /// As in Kueue.
    fn default() -> Self {
        Self(vec![
            FairStrategy::LessThanOrEqualToFinalShare,
            FairStrategy::LessThanInitialShare,
        ])
    }
}

impl TryFrom<Vec<FairStrategy>> for FairStrategies {
    type Error = FairStrategiesError;

    fn try_from(given: Vec<FairStrategy>) -> Result<Self, FairStrategiesError> {
        if given.is_empty() {
            return Err(FairStrategiesError::Empty);
        }
        let mut seen = Vec::with_capacity(2);
        for strategy in &given {
            if seen.contains(strategy) {
                return Err(FairStrategiesError::Twice(*strategy));
            }
            seen.push(*strategy);
        }
        Ok(Self(given))
    }
}

impl From<FairStrategies> for Vec<FairStrategy> {
    fn from(strategies: FairStrategies) -> Self {
        strategies.0
    }
}

/// Who may borrow in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BorrowingGate {
    /// Whoever finds quota.
    #[default]
    Quota,
    /// In a cohort nobody, after an entry that does not borrow.
    Cohort,
}

/// Whom to be like also where it is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compatibility {
    /// Kueue.
    Kueue,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn freed_quota_is_reserved_unless_kueue_compatible() {
        let is_damped = |given: Value| {
            let settings: PreemptionSettings = serde_json::from_value(given).unwrap();
            settings.is_damped()
        };
        assert!(is_damped(json!({})));
        assert!(!is_damped(json!({"damping": false})));
        assert!(!is_damped(json!({"compatibility": "kueue"})));
        assert!(is_damped(
            json!({"compatibility": "kueue", "damping": true})
        ));
    }

    #[test]
    fn fair_strategy_duplicate_is_rejected() {
        let read = |names: &[&str]| {
            let read = serde_json::from_value::<FairStrategies>(json!(names));
            read.map(|it| it.as_slice().len())
                .map_err(|error| error.to_string())
        };
        let (last, first) = ("LessThanOrEqualToFinalShare", "LessThanInitialShare");
        assert_eq!(read(&[last]), Ok(1));
        assert_eq!(read(&[first, last]), Ok(2));
        let empty = "the list of strategies is empty; leave it out for both";
        assert_eq!(read(&[]), Err(empty.to_owned()));
        let twice = format!("{first} stands twice in the list of strategies");
        assert_eq!(read(&[first, last, first]), Err(twice));
    }
}
