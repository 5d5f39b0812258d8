//! Admission and preemption settings for all queues.

use super::bounded::BoundedInt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Admission and preemption settings for all queues.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PreemptionSettings {
    /// How victims are selected.
    pub algorithm: Algorithm,
    /// Settings for `algorithm: FairSharing`.
    pub fair_sharing: FairSharing,
    /// Which workloads may borrow in a cycle: every workload that finds quota, as in Kueue today (`Quota`),
    /// or none of a cohort after an entry that needs no borrowing, as in KEP-83 (`Cohort`).
    pub borrowing_gate: BorrowingGate,
    /// Reproduce Kueue's known bugs. Unset: they are fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<Compatibility>,
    /// Hold quota that a preemption frees for its preemptor, and prevent preemption loops. Unset: true,
    /// unless `compatibility` is set: Kueue has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damping: Option<bool>,
    /// Admit a workload with fewer pods if it sets `minCount`.
    pub partial_admission: bool,
    /// Maximum number of workloads preempted in one cycle. Unset: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_victims_per_cycle: Option<BoundedInt<1, 1_048_576>>,
    /// Limits of ClusterQueues that do not set them in `spec.preemption.limits`. A limit that neither sets does not
    /// apply.
    pub limits: DefaultPreemptionLimits,
}

/// The largest number of seconds of a limit.
pub const SECONDS_MAX: u64 = 2_147_483_647;

/// Limits of ClusterQueues that do not set them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DefaultPreemptionLimits {
    /// How long a workload must wait before it may preempt, in seconds since its creation or its last eviction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<BoundedInt<0, SECONDS_MAX>>,
    /// The highest preemption priority that workloads of the queue preempt in the queue itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_max_priority_threshold: Option<i32>,
    /// The highest preemption priority that they preempt in other queues of the cohort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_max_priority_threshold: Option<i32>,
    /// The minimum run time of a workload before workloads of the same queue may preempt it, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_min_run_seconds: Option<BoundedInt<0, SECONDS_MAX>>,
    /// The minimum run time of a workload before workloads of other queues may preempt it, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_min_run_seconds: Option<BoundedInt<0, SECONDS_MAX>>,
    /// The number of preemptions after which a workload is not preempted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_preemptions: Option<BoundedInt<1, 1_048_576>>,
    /// The maximum number of workloads of one queue that are preempted in one cycle.
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
            limits: DefaultPreemptionLimits::default(),
        }
    }
}

impl PreemptionSettings {
    /// Whether freed quota is held and preemption loops are prevented, with the default applied.
    #[must_use]
    pub fn is_damped(&self) -> bool {
        self.damping.unwrap_or(self.compatibility.is_none())
    }
}

/// How victims are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Algorithm {
    /// By priority and borrowing.
    #[default]
    Classical,
    /// By dominant resource share.
    FairSharing,
}

/// Settings for fair sharing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FairSharing {
    /// When a preemptor may preempt in a queue with a larger share: one strategy or both, in the order in
    /// which they are tried.
    pub preemption_strategies: FairStrategies,
}

/// When a preemptor may preempt in a queue with a larger share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum FairStrategy {
    /// If the preemptor's share with its workload is at most the other's share without the victim.
    LessThanOrEqualToFinalShare,
    /// If the preemptor's share with its workload is less than the other's current share.
    LessThanInitialShare,
}

/// One strategy or more, without duplicates.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "Vec<FairStrategy>", into = "Vec<FairStrategy>")]
#[schemars(with = "Vec<FairStrategy>", extend("minItems" = 1, "uniqueItems" = true))]
pub struct FairStrategies(Vec<FairStrategy>);

/// An invalid list of strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FairStrategiesError {
    /// The list is empty, so that no preemption would be possible.
    #[error("the list of strategies is empty; omit it to use both")]
    Empty,
    /// A strategy is listed twice; the second one has no effect.
    #[error("{0:?} is a duplicate in the list of strategies")]
    Duplicate(FairStrategy),
}

impl FairStrategies {
    /// The strategies, in the order in which they are tried.
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
                return Err(FairStrategiesError::Duplicate(*strategy));
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

/// Which workloads may borrow in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BorrowingGate {
    /// Every workload that finds quota.
    #[default]
    Quota,
    /// None of a cohort, after an entry that does not borrow.
    Cohort,
}

/// The scheduler whose bugs are reproduced.
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
        let empty = "the list of strategies is empty; omit it to use both";
        assert_eq!(read(&[]), Err(empty.to_owned()));
        let duplicate = format!("{first} is a duplicate in the list of strategies");
        assert_eq!(read(&[first, last, first]), Err(duplicate));
    }
}
