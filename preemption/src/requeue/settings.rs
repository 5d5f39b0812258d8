//! The settings of `waitForPodsReady`.

use super::backoff::Backoff;
use crate::policy::Compatibility;
use std::time::Duration;

/// The time that orders a workload in the queue after an eviction because its pods were not ready
/// (`requeuingStrategy.timestamp`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOrderTimestamp {
    /// Its eviction: it is behind workloads of equal priority that were created before.
    #[default]
    Eviction,
    /// Its creation: it keeps its position.
    Creation,
}

/// `waitForPodsReady` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequeueSettings {
    /// Whether workloads are evicted because their pods are not ready (`enable`). The rest of the life cycle does not
    /// depend on it.
    pub is_enabled: bool,
    /// How long the pods may take to become ready after the admission (`timeout`).
    pub timeout: Duration,
    /// How long they may take to become ready again (`recoveryTimeout`); `None` means no limit.
    pub recovery_timeout: Option<Duration>,
    /// Whether admissions wait until the pods of all admitted workloads are ready (`blockAdmission`).
    pub block_admission: bool,
    /// The queue order of requeued workloads.
    pub timestamp: QueueOrderTimestamp,
    /// How often a workload is requeued before it is deactivated (`backoffLimitCount`); `None` means no limit, 0 means
    /// never.
    pub backoff_limit_count: Option<u32>,
    /// For how long after its first eviction a workload is requeued (`backoffLimitSeconds`); `None` means no limit,
    /// zero means never. The limit that is reached first applies.
    pub backoff_limit: Option<Duration>,
    /// The delay before each requeueing.
    pub backoff: Backoff,
    /// Whether a workload keeps its position in the queue after a borrowing preemptor reclaimed its quota. Kueue's
    /// feature gate `PrioritySortingWithinCohort`, which is on by default.
    pub priority_sorting_within_cohort: bool,
    /// Whether to reproduce Kueue's known bugs.
    pub compatibility: Compatibility,
}

impl Default for RequeueSettings {
    /// Disabled. Once enabled, both timeouts are 300 s as in KEP-1282, and the delays are Kueue's current ones.
    fn default() -> Self {
        let timeout = Duration::from_mins(5);
        Self {
            is_enabled: false,
            timeout,
            recovery_timeout: Some(timeout),
            block_admission: false,
            timestamp: QueueOrderTimestamp::default(),
            backoff_limit_count: None,
            backoff_limit: None,
            backoff: Backoff::default(),
            priority_sorting_within_cohort: true,
            compatibility: Compatibility::default(),
        }
    }
}

impl RequeueSettings {
    pub(super) fn is_kueue_compatible(&self) -> bool {
        self.compatibility == Compatibility::Kueue
    }
}
