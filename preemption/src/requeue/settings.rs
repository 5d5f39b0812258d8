//! What the administrator sets: `waitForPodsReady`.

use super::backoff::Backoff;
use crate::policy::Compatibility;
use std::time::Duration;

/// By which time a workload takes its place in the queue after its pods were not ready in time
/// (`requeuingStrategy.timestamp`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOrderTimestamp {
    /// By its eviction: behind those of equal priority that came before.
    #[default]
    Eviction,
    /// By its creation: where it was.
    Creation,
}

/// `waitForPodsReady` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequeueSettings {
    /// Whether anybody is evicted because pods are not ready (`enable`). The rest of the life cycle does
    /// not depend on it.
    pub is_enabled: bool,
    /// How long the pods may take to be ready after the workload is admitted (`timeout`).
    pub timeout: Duration,
    /// How long they may take to be ready again (`recoveryTimeout`); `None` is for ever.
    pub recovery_timeout: Option<Duration>,
    /// Whether nobody is admitted until the pods of all who are admitted are ready (`blockAdmission`).
    pub block_admission: bool,
    /// The place in the queue of who comes back.
    pub timestamp: QueueOrderTimestamp,
    /// How often a workload is put back before it is deactivated (`backoffLimitCount`); `None` is no
    /// limit, 0 is never.
    pub backoff_limit_count: Option<u32>,
    /// For how long after the first time its pods were not ready it is put back (`backoffLimitSeconds`);
    /// `None` is no limit, zero is never. Whichever limit is reached first counts.
    pub backoff_limit: Option<Duration>,
    /// How long it waits each time.
    pub backoff: Backoff,
    /// Whether a workload whose quota was reclaimed by somebody who borrows keeps its place in the queue.
    /// Kueue's gate `PrioritySortingWithinCohort`, which is on by default.
    pub priority_sorting_within_cohort: bool,
    /// Where what Kueue does is wrong, whether to do the same.
    pub compatibility: Compatibility,
}

impl Default for RequeueSettings {
    /// Off. If it is turned on, both timeouts are 300 s as in KEP-1282, and the delays are those of Kueue
    /// today.
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
