//! Reasons and messages of conditions and events, in Kueue's words.
//!
//! | condition | reason | message |
//! |---|---|---|
//! | `Evicted=True` | `PodsReadyTimeout` | Exceeded the PodsReady timeout *namespace/name* |
//! | `Evicted=True` | `AdmissionCheck` | Evicted due to *checks* |
//! | `Evicted=True` | `ClusterQueueStopped` | The ClusterQueue is stopped |
//! | `Evicted=True` | `LocalQueueStopped` | The LocalQueue is stopped |
//! | `Evicted=True` | `JobChanged` | *the current requests of its job* |
//! | `Evicted=True` | `Deactivated` | The workload is deactivated |
//! | `Evicted=True` | `DeactivatedDueTo`*cause* | The workload is deactivated due to *message of the target* |
//! | `DeactivationTarget=True` | `RequeuingLimitExceeded` | exceeding the maximum number of re-queuing retries |
//! | `DeactivationTarget=True` | `RequeuingLimitExceeded` | exceeding the maximum time of re-queuing |
//! | `DeactivationTarget=True` | `AdmissionCheck` | *checks* |
//! | `Requeued=True` | `BackoffFinished` | The workload backoff was finished |
//! | `Requeued=True` | `Reactivated` | The workload was reactivated |
//! | `Requeued=True` | `ClusterQueueRestarted` | The ClusterQueue was restarted after being stopped |
//! | `Requeued=True` | `LocalQueueRestarted` | The LocalQueue was restarted after being stopped |
//!
//! `Requeued=False` carries the reason of the eviction. An eviction of a workload that holds an admission
//! also emits an event of type `Normal`: `EvictedDueTo`*reason* with the same message. The messages about the
//! maximum time and about a changed job are ours; all others are Kueue's, which also stops such a job and
//! recreates its workload.

/// Why a workload was evicted: the reason of `Evicted=True`, and of `Requeued=False` after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvictionReason {
    /// A preemptor reclaimed its quota.
    Preempted,
    /// Its pods were not ready in time.
    PodsReadyTimeout,
    /// An admission check requests a retry. Only Kueue has these.
    AdmissionCheck,
    /// Its ClusterQueue is stopped and drained.
    ClusterQueueStopped,
    /// Its LocalQueue is stopped and drained.
    LocalQueueStopped,
    /// Nodes of its pods failed.
    NodeFailures,
    /// Its job requests more than its admission covers.
    JobChanged,
    /// It is deactivated: by its user (`None`), or by the controller for a cause.
    Deactivated(Option<DeactivationCause>),
    /// An unknown reason.
    Other,
}

/// Why the controller deactivated a workload: the reason of `DeactivationTarget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeactivationCause {
    /// It was requeued too often or for too long.
    RequeuingLimitExceeded,
    /// It exceeded its maximum execution time.
    MaximumExecutionTimeExceeded,
    /// An admission check rejected it. Only Kueue has these.
    AdmissionCheck,
    /// An unknown cause.
    Other,
}

impl DeactivationCause {
    /// The reason string of the condition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RequeuingLimitExceeded => "RequeuingLimitExceeded",
            Self::MaximumExecutionTimeExceeded => "MaximumExecutionTimeExceeded",
            Self::AdmissionCheck => "AdmissionCheck",
            Self::Other => "Other",
        }
    }

    /// The cause that a condition's reason names.
    #[must_use]
    pub fn from_reason(reason: &str) -> Self {
        let known = [
            Self::RequeuingLimitExceeded,
            Self::MaximumExecutionTimeExceeded,
            Self::AdmissionCheck,
        ];
        let found = known.into_iter().find(|it| it.as_str() == reason);
        found.unwrap_or(Self::Other)
    }
}

impl EvictionReason {
    const KNOWN: [Self; 11] = [
        Self::Preempted,
        Self::PodsReadyTimeout,
        Self::AdmissionCheck,
        Self::ClusterQueueStopped,
        Self::LocalQueueStopped,
        Self::NodeFailures,
        Self::JobChanged,
        Self::Deactivated(None),
        Self::Deactivated(Some(DeactivationCause::RequeuingLimitExceeded)),
        Self::Deactivated(Some(DeactivationCause::MaximumExecutionTimeExceeded)),
        Self::Deactivated(Some(DeactivationCause::AdmissionCheck)),
    ];

    /// The reason that a condition names.
    #[must_use]
    pub fn from_reason(reason: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|it| it.as_str() == reason);
        let other = if reason.starts_with("DeactivatedDueTo") {
            Self::Deactivated(Some(DeactivationCause::Other))
        } else {
            Self::Other
        };
        known.unwrap_or(other)
    }

    /// The reason string of the condition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preempted => "Preempted",
            Self::PodsReadyTimeout => "PodsReadyTimeout",
            Self::AdmissionCheck => "AdmissionCheck",
            Self::ClusterQueueStopped => "ClusterQueueStopped",
            Self::LocalQueueStopped => "LocalQueueStopped",
            Self::NodeFailures => "NodeFailures",
            Self::JobChanged => "JobChanged",
            Self::Deactivated(None) => "Deactivated",
            Self::Deactivated(Some(cause)) => match cause {
                DeactivationCause::RequeuingLimitExceeded => {
                    "DeactivatedDueToRequeuingLimitExceeded"
                }
                DeactivationCause::MaximumExecutionTimeExceeded => {
                    "DeactivatedDueToMaximumExecutionTimeExceeded"
                }
                DeactivationCause::AdmissionCheck => "DeactivatedDueToAdmissionCheck",
                DeactivationCause::Other => "DeactivatedDueToOther",
            },
            Self::Other => "Other",
        }
    }

    /// The reason and the underlying cause in statistics: only a deactivation by the controller has a cause.
    ///
    /// Source: Kueue `WorkloadSchedulingStatsEviction`.
    #[must_use]
    pub const fn reason_and_cause(self) -> (&'static str, &'static str) {
        match self {
            Self::Deactivated(Some(cause)) => (Self::Deactivated(None).as_str(), cause.as_str()),
            other => (other.as_str(), ""),
        }
    }

    /// The message of the condition and the event. `about` depends on the reason: for `PodsReadyTimeout` the workload
    /// as `namespace/name`, for `AdmissionCheck` the list of checks, for a deactivation with a cause the message of
    /// `DeactivationTarget`, for reasons that are decided elsewhere the whole message.
    #[must_use]
    pub fn message(self, about: &str) -> String {
        match self {
            Self::PodsReadyTimeout => format!("Exceeded the PodsReady timeout {about}"),
            Self::AdmissionCheck => format!("Evicted due to {about}"),
            Self::ClusterQueueStopped => "The ClusterQueue is stopped".to_owned(),
            Self::LocalQueueStopped => "The LocalQueue is stopped".to_owned(),
            Self::Deactivated(None) => "The workload is deactivated".to_owned(),
            Self::Deactivated(Some(_)) => format!("The workload is deactivated due to {about}"),
            Self::Preempted | Self::NodeFailures | Self::JobChanged | Self::Other => {
                about.to_owned()
            }
        }
    }

    /// The reason of the event.
    #[must_use]
    pub fn event(self) -> String {
        format!("EvictedDueTo{}", self.as_str())
    }

    /// Whether a workload is requeued as soon as its job has stopped.
    pub(super) const fn requeues_at_once(self) -> bool {
        matches!(
            self,
            Self::Preempted | Self::NodeFailures | Self::JobChanged
        )
    }
}

/// Why the pods of a workload are not ready: the reason of `PodsReady=False`, and the underlying cause by
/// which metrics count timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotReadyReason {
    /// The pods were never all ready since the workload was admitted.
    WaitForStart,
    /// All pods were ready, and one failed.
    WaitForRecovery,
    /// An unknown reason.
    Other,
}

impl NotReadyReason {
    /// The reason string of the condition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WaitForStart => "WaitForStart",
            Self::WaitForRecovery => "WaitForRecovery",
            Self::Other => "Other",
        }
    }

    /// Parses the reason of a condition. `PodsReady` of old Kueue releases is `WaitForStart`.
    #[must_use]
    pub fn from_reason(reason: &str) -> Self {
        match reason {
            "WaitForStart" | "PodsReady" => Self::WaitForStart,
            "WaitForRecovery" => Self::WaitForRecovery,
            _ => Self::Other,
        }
    }
}

/// The limit of requeueing that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequeuingLimit {
    /// `backoffLimitCount`.
    Count,
    /// `backoffLimitSeconds`.
    Time,
}

/// Why a workload is about to be deactivated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeactivationTarget {
    /// It was requeued too often or for too long.
    RequeuingLimit(RequeuingLimit),
    /// An admission check rejected it. Only Kueue has these.
    RejectedChecks,
}

impl DeactivationTarget {
    /// The cause, which is the reason of the condition.
    #[must_use]
    pub const fn cause(self) -> DeactivationCause {
        match self {
            Self::RequeuingLimit(_) => DeactivationCause::RequeuingLimitExceeded,
            Self::RejectedChecks => DeactivationCause::AdmissionCheck,
        }
    }

    /// The message of the condition. `about` is the list of rejecting checks, if there are any.
    #[must_use]
    pub fn message(self, about: &str) -> String {
        let text = match self {
            Self::RequeuingLimit(RequeuingLimit::Count) => {
                "exceeding the maximum number of re-queuing retries"
            }
            Self::RequeuingLimit(RequeuingLimit::Time) => {
                "exceeding the maximum time of re-queuing"
            }
            Self::RejectedChecks => about,
        };
        text.to_owned()
    }

    /// Reason and message of the event of type `Warning`, if there is one.
    #[must_use]
    pub fn event(self, about: &str) -> Option<(&'static str, String)> {
        let text = || format!("Deactivated due to {about}");
        (self == Self::RejectedChecks).then(|| ("AdmissionCheckRejected", text()))
    }
}

/// Why a workload is requeued: the reason of `Requeued=True`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequeuedReason {
    /// Its backoff is over.
    BackoffFinished,
    /// It is active again.
    Reactivated,
    /// Its ClusterQueue is no longer stopped.
    ClusterQueueRestarted,
    /// Its LocalQueue is no longer stopped.
    LocalQueueRestarted,
}

impl RequeuedReason {
    /// The reason string of the condition.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BackoffFinished => "BackoffFinished",
            Self::Reactivated => "Reactivated",
            Self::ClusterQueueRestarted => "ClusterQueueRestarted",
            Self::LocalQueueRestarted => "LocalQueueRestarted",
        }
    }

    /// The message of the condition.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::BackoffFinished => "The workload backoff was finished",
            Self::Reactivated => "The workload was reactivated",
            Self::ClusterQueueRestarted => "The ClusterQueue was restarted after being stopped",
            Self::LocalQueueRestarted => "The LocalQueue was restarted after being stopped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        DeactivationCause, DeactivationTarget, EvictionReason, NotReadyReason, RequeuingLimit,
    };

    #[test]
    fn reasons_round_trip_through_strings() {
        for reason in EvictionReason::KNOWN {
            assert_eq!(EvictionReason::from_reason(reason.as_str()), reason);
            assert_eq!(reason.event(), format!("EvictedDueTo{}", reason.as_str()));
            if let EvictionReason::Deactivated(Some(cause)) = reason {
                assert_eq!(DeactivationCause::from_reason(cause.as_str()), cause);
                let ending = reason.as_str().strip_prefix("DeactivatedDueTo");
                assert_eq!(ending, Some(cause.as_str()));
            }
        }
        for reason in [
            NotReadyReason::WaitForStart,
            NotReadyReason::WaitForRecovery,
        ] {
            assert_eq!(NotReadyReason::from_reason(reason.as_str()), reason);
        }
        assert_eq!(
            NotReadyReason::from_reason("PodsReady"),
            NotReadyReason::WaitForStart
        );
    }

    #[test]
    fn unknown_reasons_become_other() {
        assert_eq!(
            EvictionReason::from_reason("Weather"),
            EvictionReason::Other
        );
        let cause = Some(DeactivationCause::Other);
        let found = EvictionReason::from_reason("DeactivatedDueToWeather");
        assert_eq!(found, EvictionReason::Deactivated(cause));
        assert_eq!(
            DeactivationCause::from_reason("Weather"),
            DeactivationCause::Other
        );
        assert_eq!(
            NotReadyReason::from_reason("Weather"),
            NotReadyReason::Other
        );
    }

    #[test]
    fn deactivation_event_only_for_rejected_checks() {
        let (reason, message) = DeactivationTarget::RejectedChecks
            .event("a check")
            .expect("an event");
        assert_eq!(reason, "AdmissionCheckRejected");
        assert_eq!(message, "Deactivated due to a check");
        assert_eq!(
            DeactivationTarget::RequeuingLimit(RequeuingLimit::Count).event(""),
            None
        );
    }
}
