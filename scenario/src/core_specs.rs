//! Maps cohorts, ClusterQueues and pod sets of the format onto the core.

use crate::amount_text::AmountText;
use crate::scenario::{
    self, ClusterQueue, Cohort, FairSharing, FairStrategy, PodSet, Preemption, Quota, ResourceGroup,
};
use lockkeeper_api::cluster_queue::{ReclaimWithinCohort, WithinClusterQueue};
use lockkeeper_cluster_state::queue_policies;
use lockkeeper_preemption as core;
use lockkeeper_preemption::{
    Algorithm, Amount, CohortSpec, FlavorResource, NodeId, QueueSpec, State,
};

/// The algorithm of the core with the strategies of fair sharing.
#[must_use]
pub fn core_algorithm(
    algorithm: scenario::Algorithm,
    fair_sharing: Option<&FairSharing>,
) -> Algorithm {
    if algorithm == scenario::Algorithm::Classical {
        return Algorithm::Classical;
    }
    let strategies = fair_sharing.into_iter();
    let strategies = strategies.flat_map(|it| &it.preemption_strategies);
    let strategies = strategies.map(|it| match it {
        FairStrategy::LessThanInitialShare => core::FairStrategy::LessThanInitialShare,
        FairStrategy::LessThanOrEqualToFinalShare => {
            core::FairStrategy::LessThanOrEqualToFinalShare
        }
    });
    let strategies: Vec<core::FairStrategy> = strategies.collect();
    // As in Kueue (`parseStrategies`).
    Algorithm::FairSharing(if strategies.is_empty() {
        vec![
            core::FairStrategy::LessThanOrEqualToFinalShare,
            core::FairStrategy::LessThanInitialShare,
        ]
    } else {
        strategies
    })
}

/// Declares a cohort.
pub fn declare_cohort(state: &mut State, cohort: &Cohort) -> NodeId {
    let quotas = cohort.quotas.iter();
    let quotas = quotas
        .map(|entry| {
            (
                flavor_resource(state, &entry.flavor, &entry.resource),
                quota(entry),
            )
        })
        .collect();
    state.set_cohort(CohortSpec {
        name: &cohort.name,
        parent: cohort.parent.as_deref(),
        quotas,
        weight: cohort.fair_weight,
    })
}

/// Declares a ClusterQueue, or replaces one of that name.
pub fn declare_queue(state: &mut State, queue: &ClusterQueue) -> NodeId {
    let groups = queue.resource_groups.iter();
    let groups = groups.map(|it| resource_group(state, it)).collect();
    state.set_queue(QueueSpec {
        name: &queue.name,
        cohort: queue.cohort.as_deref(),
        groups,
        preemption: preemption(&queue.preemption, queue.elastic.is_some()),
        fungibility: queue_policies::flavor_fungibility(&queue.flavor_fungibility),
        strategy: queue_policies::queueing_strategy(queue.queueing_strategy),
        backfill: queue_policies::backfill(queue.backfill.as_ref()),
        weight: queue.fair_weight,
        is_active: !queue.inactive,
        elastic: queue.elastic.as_ref().map(queue_policies::elastic_defaults),
    })
}

fn resource_group(state: &mut State, group: &ResourceGroup) -> core::ResourceGroup {
    let resources = group.resources.iter().map(|it| state.resource(it));
    let resources = resources.collect();
    let flavors = group.flavors.iter().map(|flavor| {
        let quotas = flavor.quotas.iter();
        let quotas = quotas.map(|it| (state.resource(&it.resource), quota(it)));
        core::FlavorQuotas {
            quotas: quotas.collect(),
            flavor: state.flavor(&flavor.name),
        }
    });
    core::ResourceGroup {
        flavors: flavors.collect(),
        resources,
    }
}

fn preemption(policy: &Preemption, is_elastic: bool) -> core::Preemption {
    // The defaults of `ClusterQueueSpec`.
    let (mut within, mut reclaim) = Default::default();
    if is_elastic {
        within = WithinClusterQueue::LowerPriority;
        reclaim = ReclaimWithinCohort::LowerPriority;
    }
    core::Preemption {
        within_cluster_queue: queue_policies::within_cluster_queue(
            policy.within_cluster_queue.unwrap_or(within),
        ),
        reclaim_within_cohort: queue_policies::reclaim_within_cohort(
            policy.reclaim_within_cohort.unwrap_or(reclaim),
        ),
        borrow_within_cohort: queue_policies::borrow_within_cohort(
            policy.borrow_within_cohort.as_ref(),
        ),
        limits: core::PreemptionLimits {
            within_threshold_max: policy.limits.within_max_priority_threshold,
            reclaim_threshold_max: policy.limits.reclaim_max_priority_threshold,
            min_run_within_s: policy.limits.within_min_run_seconds,
            min_run_beyond_s: policy.limits.reclaim_min_run_seconds,
            preemptions_max: policy.limits.max_preemptions,
            victims_per_cycle_max: policy.limits.max_victims_per_cycle,
            delay_s: policy.limits.delay_seconds,
        },
    }
}

/// The pod sets of a workload in the units of the core.
pub fn core_pod_sets(state: &mut State, pod_sets: &[PodSet]) -> Vec<core::PodSet> {
    let pod_sets = pod_sets.iter().map(|pod_set| {
        let requests = pod_set.requests.iter();
        let requests = requests.map(|(name, it)| (state.resource(name), core_amount(*it, name)));
        let requests = requests.collect();
        let ineligible = pod_set.ineligible_flavors.iter();
        core::PodSet {
            name: pod_set.name.as_str().into(),
            count: pod_set.count,
            count_min: pod_set.min_count,
            requests,
            ineligible: ineligible.map(|name| state.flavor(name)).collect(),
            template_hash: 0,
        }
    });
    pod_sets.collect()
}

pub(crate) fn flavor_resource(state: &mut State, flavor: &str, resource: &str) -> FlavorResource {
    FlavorResource {
        flavor: state.flavor(flavor),
        resource: state.resource(resource),
    }
}

fn quota(quota: &Quota) -> core::Quota {
    let limit = |limit: Option<AmountText>| limit.map(|it| core_amount(it, &quota.resource));
    core::Quota {
        nominal: core_amount(quota.nominal, &quota.resource),
        borrowing_limit: limit(quota.borrowing_limit),
        lending_limit: limit(quota.lending_limit),
    }
}

/// The amount in the unit of the core; `validate` has checked that it fits into 64 bits.
pub(crate) fn core_amount(amount: AmountText, resource: &str) -> Amount {
    amount
        .in_core_units(resource)
        .map_or(Amount::ZERO, Amount::new)
}
