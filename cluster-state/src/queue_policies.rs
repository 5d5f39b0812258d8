//! Conversion of the policies of a ClusterQueue into core values, for all formats.

use lockkeeper_api::cluster_queue::{
    Backfill, BackfillPolicy, BorrowWithinCohort, BorrowWithinCohortPolicy, Elastic,
    FlavorFungibility, FlavorSearch, FungibilityPreference, PreemptionLimits, QueueingStrategy,
    ReclaimWithinCohort, WithinClusterQueue,
};
use lockkeeper_preemption as core;
use lockkeeper_preemption::job::ElasticDefaults;

/// The queueing strategy: the handling of a head that cannot be admitted.
#[must_use]
pub const fn queueing_strategy(strategy: QueueingStrategy) -> core::QueueingStrategy {
    match strategy {
        QueueingStrategy::StrictFIFO => core::QueueingStrategy::StrictFifo,
        QueueingStrategy::BestEffortFIFO => core::QueueingStrategy::BestEffortFifo,
    }
}

/// The number of workloads behind the head that backfill considers by default.
const BACKFILL_WORKLOADS: i32 = 100;

/// The backfill of a queue. A number below 1, which the schema rejects, counts as 1.
#[must_use]
pub fn backfill(given: Option<&Backfill>) -> Option<core::Backfill> {
    let given = given?;
    let policy = match given.policy.unwrap_or_default() {
        BackfillPolicy::None => return None,
        BackfillPolicy::Easy => core::BackfillPolicy::Easy,
        BackfillPolicy::Conservative => core::BackfillPolicy::Conservative,
    };
    let max = given.max_workloads.unwrap_or(BACKFILL_WORKLOADS).max(1);
    Some(core::Backfill {
        policy,
        workloads_max: max.unsigned_abs(),
    })
}

/// The workloads that a workload may preempt in its own queue.
#[must_use]
pub const fn within_cluster_queue(policy: WithinClusterQueue) -> core::WithinClusterQueue {
    match policy {
        WithinClusterQueue::Never => core::WithinClusterQueue::Never,
        WithinClusterQueue::LowerPriority => core::WithinClusterQueue::LowerPriority,
        WithinClusterQueue::LowerOrNewerEqualPriority => {
            core::WithinClusterQueue::LowerOrNewerEqualPriority
        }
    }
}

/// The workloads that it may preempt in other queues.
#[must_use]
pub const fn reclaim_within_cohort(policy: ReclaimWithinCohort) -> core::ReclaimWithinCohort {
    match policy {
        ReclaimWithinCohort::Never => core::ReclaimWithinCohort::Never,
        ReclaimWithinCohort::LowerPriority => core::ReclaimWithinCohort::LowerPriority,
        ReclaimWithinCohort::Any => core::ReclaimWithinCohort::Any,
    }
}

/// The workloads that it may preempt there while it borrows.
#[must_use]
pub fn borrow_within_cohort(policy: Option<&BorrowWithinCohort>) -> core::BorrowWithinCohort {
    let Some(given) = policy else {
        return core::BorrowWithinCohort::Never;
    };
    match given.policy.unwrap_or_default() {
        BorrowWithinCohortPolicy::Never => core::BorrowWithinCohort::Never,
        BorrowWithinCohortPolicy::LowerPriority => core::BorrowWithinCohort::LowerPriority {
            threshold_max: given.max_priority_threshold,
        },
    }
}

/// The limits of preemption. Negative numbers, which the schema rejects, count as zero.
#[must_use]
pub fn preemption_limits(given: &PreemptionLimits) -> core::PreemptionLimits {
    let seconds = |it: Option<i32>| it.map(|it| i64::from(it.max(0)));
    let count = |it: Option<i32>| it.map(|it| u32::try_from(it).unwrap_or_default());
    core::PreemptionLimits {
        within_threshold_max: given.within_max_priority_threshold,
        reclaim_threshold_max: given.reclaim_max_priority_threshold,
        min_run_within_s: seconds(given.within_min_run_seconds),
        min_run_beyond_s: seconds(given.reclaim_min_run_seconds),
        preemptions_max: count(given.max_preemptions),
        victims_per_cycle_max: count(given.max_victims_per_cycle),
        delay_s: seconds(given.delay_seconds),
    }
}

/// The switches of an elastic quota.
#[must_use]
pub fn elastic_defaults(given: &Elastic) -> ElasticDefaults {
    let is = |it: Option<bool>| it == Some(true);
    ElasticDefaults {
        disable_default_preemptible: is(given.disable_default_preemptiable),
        disable_default_trigger: is(given.disable_default_trigger_preemption),
        delete_victims: is(given.pod_should_be_deleted_when_preempted),
    }
}

/// How flavors are chosen. Absent fields have the defaults of the core.
#[must_use]
pub fn flavor_fungibility(given: &FlavorFungibility) -> core::FlavorFungibility {
    let default = core::FlavorFungibility::default();
    let search = |it| match it {
        FlavorSearch::MayStopSearch => core::Fungibility::MayStopSearch,
        FlavorSearch::TryNextFlavor => core::Fungibility::TryNextFlavor,
    };
    let preference = |it| match it {
        FungibilityPreference::PreemptionOverBorrowing => core::Preference::PreemptionOverBorrowing,
        FungibilityPreference::BorrowingOverPreemption => core::Preference::BorrowingOverPreemption,
    };
    let or = |given: Option<_>, default| given.map_or(default, search);
    core::FlavorFungibility {
        when_can_borrow: or(given.when_can_borrow, default.when_can_borrow),
        when_can_preempt: or(given.when_can_preempt, default.when_can_preempt),
        preference: given.preference.map_or(default.preference, preference),
    }
}
