//! Conversion of the configuration into core values.

use lockkeeper_api::config::{
    Algorithm, BackoffPreset, BorrowingGate, BoundedInt, Compatibility, Config,
    DefaultPreemptionLimits, FairStrategy, RequeuingStrategy, RequeuingTimestamp, SECONDS_MAX,
    WaitForPodsReady,
};
use lockkeeper_preemption as core;
use lockkeeper_preemption::requeue::{Backoff, Factor, QueueOrderTimestamp, RequeueSettings};

/// The options for all queues, from `preemption`.
#[must_use]
pub fn scheduling_options(config: &Config) -> core::Options {
    let given = &config.preemption;
    let strategies = given.fair_sharing.preemption_strategies.as_slice();
    core::Options {
        algorithm: match given.algorithm {
            Algorithm::Classical => core::Algorithm::Classical,
            Algorithm::FairSharing => {
                core::Algorithm::FairSharing(strategies.iter().copied().map(strategy).collect())
            }
        },
        compatibility: compatibility(given.compatibility),
        borrowing_gate: match given.borrowing_gate {
            BorrowingGate::Quota => core::BorrowingGate::Quota,
            BorrowingGate::Cohort => core::BorrowingGate::Cohort,
        },
        disable_partial_admission: !given.partial_admission,
        disable_recomputation: false,
        damping: if given.is_damped() {
            core::Damping::On
        } else {
            core::Damping::Off
        },
        victims_per_cycle_max: given.max_victims_per_cycle.map(BoundedInt::count_u32),
        preemption_limits: default_limits(&given.limits),
        kueue_bugs: core::KueueBugs::default(),
    }
}

/// The limits of ClusterQueues that do not set them.
fn default_limits(given: &DefaultPreemptionLimits) -> core::PreemptionLimits {
    let seconds = |it: Option<BoundedInt<0, SECONDS_MAX>>| {
        it.map(|it| i64::try_from(it.get()).unwrap_or(i64::MAX))
    };
    core::PreemptionLimits {
        within_threshold_max: given.within_max_priority_threshold,
        reclaim_threshold_max: given.reclaim_max_priority_threshold,
        min_run_within_s: seconds(given.within_min_run_seconds),
        min_run_beyond_s: seconds(given.reclaim_min_run_seconds),
        preemptions_max: given.max_preemptions.map(BoundedInt::count_u32),
        victims_per_cycle_max: given.max_victims_per_cycle.map(BoundedInt::count_u32),
        delay_s: seconds(given.delay_seconds),
    }
}

/// The settings for workloads whose pods are not ready in time, from `waitForPodsReady`.
#[must_use]
pub fn requeue_settings(config: &Config) -> RequeueSettings {
    RequeueSettings {
        compatibility: compatibility(config.preemption.compatibility),
        ..pods_ready_settings(&config.wait_for_pods_ready)
    }
}

/// The settings for workloads whose pods are not ready in time, without compatibility with Kueue.
#[must_use]
pub fn pods_ready_settings(given: &WaitForPodsReady) -> RequeueSettings {
    let strategy = &given.requeuing_strategy;
    RequeueSettings {
        is_enabled: given.enable,
        timeout: given.timeout.get(),
        recovery_timeout: given.recovery_timeout_or_default(),
        block_admission: given.block_admission,
        timestamp: match strategy.timestamp {
            RequeuingTimestamp::Eviction => QueueOrderTimestamp::Eviction,
            RequeuingTimestamp::Creation => QueueOrderTimestamp::Creation,
        },
        backoff_limit_count: strategy.backoff_limit_count.map(BoundedInt::count_u32),
        backoff_limit: strategy.backoff_limit_seconds.map(BoundedInt::seconds),
        backoff: backoff(strategy),
        // A feature gate of Kueue that is on by default, and has no key here.
        priority_sorting_within_cohort: true,
        compatibility: core::Compatibility::Lockkeeper,
    }
}

fn backoff(strategy: &RequeuingStrategy) -> Backoff {
    match strategy.preset {
        Some(BackoffPreset::Kep1282) => Backoff::kep_1282(),
        None => Backoff {
            base: strategy.base(),
            factor: Factor::new(strategy.factor().hundred_millionths()),
            cap: strategy.max(),
            ..Backoff::default()
        },
    }
}

const fn strategy(strategy: FairStrategy) -> core::FairStrategy {
    match strategy {
        FairStrategy::LessThanOrEqualToFinalShare => {
            core::FairStrategy::LessThanOrEqualToFinalShare
        }
        FairStrategy::LessThanInitialShare => core::FairStrategy::LessThanInitialShare,
    }
}

const fn compatibility(given: Option<Compatibility>) -> core::Compatibility {
    match given {
        Some(Compatibility::Kueue) => core::Compatibility::Kueue,
        None => core::Compatibility::Lockkeeper,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use lockkeeper_preemption::Options;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn config(given: Value) -> Config {
        serde_json::from_value(given).unwrap()
    }

    /// The configuration changes exactly these options.
    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(
        given: &Value,
        read: fn(&Config) -> T,
        change: impl FnOnce(&mut T),
    ) {
        let mut expected = read(&Config::default());
        change(&mut expected);
        assert_eq!(read(&config(given.clone())), expected, "{given}");
    }

    #[test]
    fn settings_default_config_equals_core_defaults() {
        assert_eq!(scheduling_options(&Config::default()), Options::default());
        assert_eq!(
            requeue_settings(&Config::default()),
            RequeueSettings::default()
        );
    }

    #[test]
    fn options_map_each_preemption_key() {
        let check = |given: Value, change: fn(&mut Options)| {
            check(&json!({ "preemption": given }), scheduling_options, change);
        };
        let fair = |of: Value| json!({"algorithm": "FairSharing", "fairSharing": of});
        let one = || json!({"preemptionStrategies": ["LessThanInitialShare"]});
        check(json!({ "fairSharing": one() }), |_| {});
        check(fair(json!({})), |options| {
            options.algorithm = core::Algorithm::FairSharing(vec![
                core::FairStrategy::LessThanOrEqualToFinalShare,
                core::FairStrategy::LessThanInitialShare,
            ]);
        });
        check(fair(one()), |options| {
            let strategies = vec![core::FairStrategy::LessThanInitialShare];
            options.algorithm = core::Algorithm::FairSharing(strategies);
        });
        check(json!({"borrowingGate": "Cohort"}), |options| {
            options.borrowing_gate = core::BorrowingGate::Cohort;
        });
        check(json!({"compatibility": "kueue"}), |options| {
            options.compatibility = core::Compatibility::Kueue;
            options.damping = core::Damping::Off;
        });
        check(
            json!({"compatibility": "kueue", "damping": true}),
            |options| {
                options.compatibility = core::Compatibility::Kueue;
            },
        );
        check(json!({"damping": false}), |options| {
            options.damping = core::Damping::Off;
        });
        check(json!({"partialAdmission": false}), |options| {
            options.disable_partial_admission = true;
        });
        check(json!({"maxVictimsPerCycle": 7}), |options| {
            options.victims_per_cycle_max = Some(7);
        });
        let limits = json!({
            "withinMaxPriorityThreshold": 1, "reclaimMaxPriorityThreshold": 2,
            "withinMinRunSeconds": 3, "reclaimMinRunSeconds": 4, "maxPreemptions": 5,
            "maxVictimsPerCycle": 6, "delaySeconds": 0,
        });
        check(json!({ "limits": limits }), |options| {
            options.preemption_limits = core::PreemptionLimits {
                within_threshold_max: Some(1),
                reclaim_threshold_max: Some(2),
                min_run_within_s: Some(3),
                min_run_beyond_s: Some(4),
                preemptions_max: Some(5),
                victims_per_cycle_max: Some(6),
                delay_s: Some(0),
            };
        });
    }

    #[test]
    fn requeue_settings_map_each_pods_ready_key() {
        let check = |given: Value, change: fn(&mut RequeueSettings)| {
            check(
                &json!({ "waitForPodsReady": given }),
                requeue_settings,
                change,
            );
        };
        check(json!({"enable": true}), |it| it.is_enabled = true);
        check(json!({"timeout": "90s"}), |settings| {
            settings.timeout = Duration::from_secs(90);
            settings.recovery_timeout = Some(Duration::from_secs(90));
        });
        check(json!({"recoveryTimeout": "1m"}), |settings| {
            settings.recovery_timeout = Some(Duration::from_mins(1));
        });
        check(json!({"recoveryTimeout": "0s"}), |settings| {
            settings.recovery_timeout = None;
        });
        check(json!({"blockAdmission": true}), |settings| {
            settings.block_admission = true;
        });
    }

    #[test]
    fn requeue_settings_map_each_strategy_key() {
        let check = |given: Value, change: fn(&mut RequeueSettings)| {
            let given = json!({"waitForPodsReady": {"requeuingStrategy": given}});
            check(&given, requeue_settings, change);
        };
        check(json!({"timestamp": "Creation"}), |settings| {
            settings.timestamp = QueueOrderTimestamp::Creation;
        });
        check(json!({"backoffLimitCount": 0}), |settings| {
            settings.backoff_limit_count = Some(0);
        });
        check(json!({"backoffLimitSeconds": 9}), |settings| {
            settings.backoff_limit = Some(Duration::from_secs(9));
        });
        check(json!({"backoffBaseSeconds": 0}), |settings| {
            settings.backoff.base = Duration::ZERO;
        });
        check(json!({"backoffFactor": 1.5}), |settings| {
            settings.backoff.factor = Factor::new(150_000_000);
        });
        check(json!({"backoffMaxSeconds": 10}), |settings| {
            settings.backoff.cap = Some(Duration::from_secs(10));
        });
        check(json!({"backoffMaxSeconds": 0}), |settings| {
            settings.backoff.cap = None;
        });
        check(json!({"preset": "kep-1282"}), |settings| {
            settings.backoff = Backoff::kep_1282();
        });
    }

    #[test]
    fn requeue_settings_follow_kueue_compatibility() {
        let given = json!({"preemption": {"compatibility": "kueue"}});
        check(&given, requeue_settings, |settings| {
            settings.compatibility = core::Compatibility::Kueue;
        });
    }
}
