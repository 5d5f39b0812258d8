//! A higher borrowing limit.

use super::quota_search::{QuotaLimit, smallest_increases};
use crate::change::Change;
use crate::trial::Trial;
use lockkeeper_api::quota::ResourceQuota;
use lockkeeper_cluster_state::{in_core_units, quantity};
use lockkeeper_preemption::Amount;

struct BorrowingLimit;

impl QuotaLimit for BorrowingLimit {
    fn current(quota: &ResourceQuota) -> Option<i64> {
        in_core_units(&quota.name, quota.borrowing_limit?)
    }

    fn set(quota: &mut ResourceQuota, value: i64) {
        quota.borrowing_limit = Some(quantity(&quota.name, Amount::new(value)));
    }
}

/// The smallest increases of borrowing limits: one for each choice of flavors.
pub(super) fn changes(trial: &mut Trial) -> Vec<Change> {
    let results = smallest_increases::<BorrowingLimit>(trial).into_iter();
    let cluster_queue = trial.queue_name();
    let changes = results.map(|amounts| Change::BorrowingLimit {
        cluster_queue: cluster_queue.clone(),
        amounts,
    });
    changes.collect()
}
