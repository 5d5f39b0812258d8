//! More nominal quota.

use super::quota_search::{QuotaLimit, smallest_increases};
use crate::change::Change;
use crate::trial::Trial;
use lockkeeper_api::quota::ResourceQuota;
use lockkeeper_cluster_state::{in_core_units, quantity};
use lockkeeper_preemption::Amount;

struct NominalQuota;

impl QuotaLimit for NominalQuota {
    fn current(quota: &ResourceQuota) -> Option<i64> {
        in_core_units(&quota.name, quota.nominal_quota)
    }

    fn set(quota: &mut ResourceQuota, value: i64) {
        quota.nominal_quota = quantity(&quota.name, Amount::new(value));
    }
}

/// The smallest increases of nominal quota: one for each choice of flavors.
pub(super) fn changes(trial: &mut Trial) -> Vec<Change> {
    let results = smallest_increases::<NominalQuota>(trial).into_iter();
    let cluster_queue = trial.queue_name();
    let changes = results.map(|amounts| Change::NominalQuota {
        cluster_queue: cluster_queue.clone(),
        amounts,
    });
    changes.collect()
}
