//! Eviction and requeuing of workloads whose pods are not ready in time (Kueue KEP-1282).

use super::backoff_factor::BackoffFactor;
use super::bounded::BoundedInt;
use super::conflict::ConfigConflict;
use super::go_duration::GoDuration;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;

/// The maximum of Kueue's settings, which are int32.
const INT32_MAX: u64 = i32::MAX.unsigned_abs() as u64;

/// Eviction and requeuing of workloads whose pods are not ready in time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WaitForPodsReady {
    /// Evict a workload if its pods are not ready in time.
    pub enable: bool,
    /// How long pods may take to become ready after admission, such as `300s`, `5m` or `1h30m`; more than 0.
    #[serde(deserialize_with = "deserialize_positive")]
    pub timeout: GoDuration,
    /// How long pods may take to become ready again after one fails. Unset: the same as `timeout`; `0s`: no
    /// limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_timeout: Option<GoDuration>,
    /// Admit no workload until the pods of all admitted workloads are ready.
    pub block_admission: bool,
    /// When an evicted workload is requeued, and its position in the queue.
    pub requeuing_strategy: RequeuingStrategy,
}

impl Default for WaitForPodsReady {
    fn default() -> Self {
        Self {
            enable: false,
            timeout: GoDuration::from_default(300),
            recovery_timeout: None,
            block_admission: false,
            requeuing_strategy: RequeuingStrategy::default(),
        }
    }
}

/// Rejects 0, which would evict every workload at once but reads like no limit.
fn deserialize_positive<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<GoDuration, D::Error> {
    let timeout = GoDuration::deserialize(deserializer)?;
    if timeout.get().is_zero() {
        let message = "a timeout of 0s would evict every workload at once; \
                       to wait without a limit, set enable to false";
        return Err(D::Error::custom(message));
    }
    Ok(timeout)
}

/// When an evicted workload is requeued, and its position in the queue.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RequeuingStrategy {
    /// The time that orders it in the queue among workloads of the same priority.
    pub timestamp: RequeuingTimestamp,
    /// How often it is requeued before it is deactivated. Unset: no limit; 0: never requeued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit_count: Option<BoundedInt<0, INT32_MAX>>,
    /// How long it is requeued after its pods were not ready for the first time, in seconds. Unset: no limit;
    /// 0: never requeued. The limit that is reached first applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit_seconds: Option<BoundedInt<0, INT32_MAX>>,
    /// Backoff after the first eviction, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = BASE.get()))]
    pub backoff_base_seconds: Option<BoundedInt<0, INT32_MAX>>,
    /// Factor between successive backoffs, with up to eight decimal places.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = FACTOR))]
    pub backoff_factor: Option<BackoffFactor>,
    /// Maximum backoff, in seconds; 0: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = MAX.get()))]
    pub backoff_max_seconds: Option<BoundedInt<0, INT32_MAX>>,
    /// Backoff as in KEP-1282: 1.41284738^(n-1) seconds after the n-th eviction, without a maximum. With a
    /// timeout of 300 s, thirty evictions take a day. Excludes base, factor and maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<BackoffPreset>,
}

/// Kueue's current defaults.
const BASE: BoundedInt<0, INT32_MAX> = BoundedInt::from_default(60);
const FACTOR: BackoffFactor = BackoffFactor::from_default(2);
const MAX: BoundedInt<0, INT32_MAX> = BoundedInt::from_default(3_600);

/// The time that orders a requeued workload in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum RequeuingTimestamp {
    /// Its eviction: behind workloads of the same priority that came before.
    #[default]
    Eviction,
    /// Its creation: at its former position.
    Creation,
}

/// A named backoff formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum BackoffPreset {
    /// 1.41284738^(n-1) seconds, without a maximum.
    #[serde(rename = "kep-1282")]
    Kep1282,
}

impl WaitForPodsReady {
    /// The recovery timeout with the default applied; `None` is no limit.
    #[must_use]
    pub fn recovery_timeout_or_default(&self) -> Option<Duration> {
        let given = self.recovery_timeout.unwrap_or(self.timeout).get();
        (!given.is_zero()).then_some(given)
    }

    /// Checks settings that depend on each other.
    ///
    /// # Errors
    ///
    /// A preset together with a setting that it determines.
    pub fn check(&self) -> Result<(), ConfigConflict> {
        let given = &self.requeuing_strategy;
        let others = [
            (
                given.backoff_base_seconds.is_some(),
                "waitForPodsReady.requeuingStrategy.backoffBaseSeconds",
            ),
            (
                given.backoff_factor.is_some(),
                "waitForPodsReady.requeuingStrategy.backoffFactor",
            ),
            (
                given.backoff_max_seconds.is_some(),
                "waitForPodsReady.requeuingStrategy.backoffMaxSeconds",
            ),
        ];
        let other = others.into_iter().find(|(is_given, _)| *is_given);
        match other {
            Some((_, other_key)) if given.preset.is_some() => {
                Err(ConfigConflict::MutuallyExclusive {
                    key: "waitForPodsReady.requeuingStrategy.preset",
                    other_key,
                    why: "the preset determines each backoff",
                })
            }
            _ => Ok(()),
        }
    }
}

impl RequeuingStrategy {
    /// The first backoff with the default applied; unused with a preset.
    #[must_use]
    pub fn base(&self) -> Duration {
        self.backoff_base_seconds.unwrap_or(BASE).seconds()
    }

    /// The factor with the default applied; unused with a preset.
    #[must_use]
    pub fn factor(&self) -> BackoffFactor {
        self.backoff_factor.unwrap_or(FACTOR)
    }

    /// The maximum backoff with the default applied; `None` is no limit. Unused with a preset.
    #[must_use]
    pub fn max(&self) -> Option<Duration> {
        let given = self.backoff_max_seconds.unwrap_or(MAX).seconds();
        (!given.is_zero()).then_some(given)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use serde_json::{Value, json};

    fn read(given: Value) -> WaitForPodsReady {
        serde_json::from_value(given).unwrap()
    }

    #[test]
    fn recovery_timeout_unset_defaults_to_timeout() {
        let recovery = |given| read(given).recovery_timeout_or_default();
        assert_eq!(recovery(json!({})), Some(Duration::from_mins(5)));
        let minute = Some(Duration::from_mins(1));
        assert_eq!(recovery(json!({"timeout": "1m"})), minute);
        assert_eq!(recovery(json!({"recoveryTimeout": "60s"})), minute);
        assert_eq!(recovery(json!({"recoveryTimeout": "0s"})), None);
        assert_eq!(recovery(json!({"recoveryTimeout": "0"})), None);
    }

    #[test]
    fn timeout_zero_is_rejected() {
        let read = |given| serde_json::from_value::<WaitForPodsReady>(given);
        let least = read(json!({"timeout": "1ns"})).unwrap();
        assert_eq!(least.timeout.get(), Duration::from_nanos(1));
        let message = read(json!({"timeout": "0s"})).unwrap_err().to_string();
        assert!(message.contains("set enable to false"), "{message}");
    }

    #[test]
    fn preset_with_backoff_settings_is_rejected() {
        let keys = |mut given: Value| {
            given["preset"] = json!("kep-1282");
            let checked = read(json!({"requeuingStrategy": given})).check();
            checked.map_err(|wrong| wrong.keys())
        };
        assert_eq!(
            keys(json!({"backoffLimitCount": 3, "timestamp": "Creation"})),
            Ok(())
        );
        let preset = "waitForPodsReady.requeuingStrategy.preset";
        for (other, value) in [
            ("backoffBaseSeconds", json!(60)),
            ("backoffFactor", json!(2)),
            ("backoffMaxSeconds", json!(3_600)),
        ] {
            let key = keys(json!({other: value})).unwrap_err();
            assert_eq!(key.0, preset);
            assert_eq!(key.1.rsplit('.').next(), Some(other));
        }
        let without = read(json!({"requeuingStrategy": {"backoffFactor": 3}}));
        assert_eq!(without.check(), Ok(()));
    }
}
