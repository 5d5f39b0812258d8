//! The fields of a ClusterQueue that rules read besides its quota.

use super::queue_preemption::policy;
use super::quota_fields::QuotaFields;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::cluster_queue::{
    BorrowWithinCohortPolicy, FlavorSearch, QueueingStrategy, ReclaimWithinCohort,
};
use lockkeeper_api::foreign::kueue;

/// A ClusterQueue, lockkeeper's or Kueue's.
pub(crate) trait QueueFields: QuotaFields {
    /// The selector of the namespaces whose workloads it admits.
    fn namespace_selector(&self) -> Option<&LabelSelector>;

    /// The preference between borrowing and preempting, if set.
    fn fungibility_preference(&self) -> Option<String>;

    /// Whether all flavors are tried before one is selected.
    fn tries_all_flavors(&self) -> bool;

    /// Whether no workload is admitted before the head of the queue.
    fn is_strict_fifo(&self) -> bool;

    /// The reclaim policy, unless it is unset or `Never`.
    fn reclaim_policy(&self) -> Option<String>;

    /// The policy for preempting while borrowing, unless it is unset or `Never`.
    fn borrow_preemption_policy(&self) -> Option<String>;

    /// The highest priority of victims while borrowing, if set.
    fn max_priority_threshold(&self) -> Option<i32>;
}

impl QueueFields for ClusterQueue {
    fn namespace_selector(&self) -> Option<&LabelSelector> {
        self.spec.namespace_selector.as_ref()
    }

    fn fungibility_preference(&self) -> Option<String> {
        let given = self.spec.flavor_fungibility.as_ref()?.preference?;
        Some(format!("{given:?}"))
    }

    fn tries_all_flavors(&self) -> bool {
        let given = self.spec.flavor_fungibility.as_ref();
        let both = given.map(|it| (it.when_can_borrow, it.when_can_preempt));
        let (borrow, preempt) = both.unwrap_or_default();
        // The defaults: whenCanBorrow stops the search, whenCanPreempt does not.
        borrow == Some(FlavorSearch::TryNextFlavor)
            && preempt.is_none_or(|it| it == FlavorSearch::TryNextFlavor)
    }

    fn is_strict_fifo(&self) -> bool {
        self.spec.queueing_strategy == Some(QueueingStrategy::StrictFIFO)
    }

    fn reclaim_policy(&self) -> Option<String> {
        let given = self.spec.preemption.as_ref()?.reclaim_within_cohort?;
        (given != ReclaimWithinCohort::Never).then(|| format!("{given:?}"))
    }

    fn borrow_preemption_policy(&self) -> Option<String> {
        let given = self.spec.borrow_within_cohort();
        (given != BorrowWithinCohortPolicy::Never).then(|| format!("{given:?}"))
    }

    fn max_priority_threshold(&self) -> Option<i32> {
        let preemption = self.spec.preemption.as_ref()?;
        preemption
            .borrow_within_cohort
            .as_ref()?
            .max_priority_threshold
    }
}

impl QueueFields for kueue::ClusterQueue {
    fn namespace_selector(&self) -> Option<&LabelSelector> {
        self.spec.namespace_selector.as_ref()
    }

    fn fungibility_preference(&self) -> Option<String> {
        self.spec.flavor_fungibility.as_ref()?.preference.clone()
    }

    fn tries_all_flavors(&self) -> bool {
        let given = self.spec.flavor_fungibility.as_ref();
        given.is_some_and(|text| {
            [&text.when_can_borrow, &text.when_can_preempt]
                .iter()
                .all(|it| *it == "TryNextFlavor")
        })
    }

    fn is_strict_fifo(&self) -> bool {
        self.spec.queueing_strategy == "StrictFIFO"
    }

    fn reclaim_policy(&self) -> Option<String> {
        policy(&self.spec.preemption.as_ref()?.reclaim_within_cohort)
    }

    fn borrow_preemption_policy(&self) -> Option<String> {
        let preemption = self.spec.preemption.as_ref()?;
        policy(&preemption.borrow_within_cohort.as_ref()?.policy)
    }

    fn max_priority_threshold(&self) -> Option<i32> {
        let preemption = self.spec.preemption.as_ref()?;
        preemption
            .borrow_within_cohort
            .as_ref()?
            .max_priority_threshold
    }
}
