//! ClusterQueues and Cohorts as the queues of a trace.

use lockkeeper_api::cluster_queue::ClusterQueueSpec;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_api::quota::{self, FairSharing, ResourceQuota};
use lockkeeper_api::{ClusterQueue, Cohort, cluster_queue};
use lockkeeper_cluster_state::ObjectStore;
use lockkeeper_preemption as core;
use lockkeeper_scenario as scenario;
use lockkeeper_scenario::AmountText;

/// The ClusterQueues of a cluster, sorted by name. One that admits no workload is inactive.
pub(crate) fn cluster_queues(objects: &ObjectStore) -> Vec<scenario::ClusterQueue> {
    let queues = objects.cluster_queue_names();
    let queues = queues.filter_map(|name| {
        let queue = objects.cluster_queue(name)?;
        let is_stopped = queue
            .spec
            .stop_policy
            .is_some_and(|it| it != cluster_queue::StopPolicy::None);
        let lacks_flavor = objects.is_complete() && !objects.missing_flavors(name).is_empty();
        Some(scenario_queue(name, queue, is_stopped || lacks_flavor))
    });
    queues.collect()
}

/// A ClusterQueue of a trace.
pub(crate) fn scenario_queue(
    name: &str,
    queue: &ClusterQueue,
    is_inactive: bool,
) -> scenario::ClusterQueue {
    let spec = &queue.spec;
    scenario::ClusterQueue {
        name: name.to_owned(),
        cohort: spec.cohort_name.clone(),
        fair_weight: fair_weight(spec.fair_sharing.as_ref()),
        resource_groups: resource_groups(spec),
        preemption: spec.preemption.as_ref().map(preemption).unwrap_or_default(),
        flavor_fungibility: spec.flavor_fungibility.clone().unwrap_or_default(),
        queueing_strategy: spec.queueing_strategy.unwrap_or_default(),
        backfill: queue.spec.backfill,
        // The workloads of other namespaces are left out.
        namespace_selector: None,
        elastic: spec.elastic.clone(),
        inactive: is_inactive,
        usage: Vec::new(),
    }
}

/// The Cohorts of a cluster.
pub(crate) fn cohorts(cohorts: &[Cohort]) -> Vec<scenario::Cohort> {
    let cohorts = cohorts.iter().map(|cohort| scenario::Cohort {
        name: cohort.metadata.name.clone().unwrap_or_default(),
        parent: cohort.spec.parent_name.clone(),
        fair_weight: fair_weight(cohort.spec.fair_sharing.as_ref()),
        quotas: cohort
            .spec
            .resource_groups
            .iter()
            .flat_map(|group| &group.flavors)
            .flat_map(|flavor| {
                let quotas = flavor.resources.iter();
                quotas.map(|it| scenario_quota(it, &flavor.name))
            })
            .collect(),
    });
    cohorts.collect()
}

/// The algorithm of a cluster as that of a trace, with the strategies of fair sharing.
pub(crate) fn algorithm(
    algorithm: &core::Algorithm,
) -> (scenario::Algorithm, Option<scenario::FairSharing>) {
    let core::Algorithm::FairSharing(strategies) = algorithm else {
        return (scenario::Algorithm::Classical, None);
    };
    let strategies = strategies.iter().map(|it| match it {
        core::FairStrategy::LessThanOrEqualToFinalShare => {
            scenario::FairStrategy::LessThanOrEqualToFinalShare
        }
        core::FairStrategy::LessThanInitialShare => scenario::FairStrategy::LessThanInitialShare,
    });
    let sharing = scenario::FairSharing {
        preemption_strategies: strategies.collect(),
    };
    (scenario::Algorithm::Fair, Some(sharing))
}

/// The resource groups of a ClusterQueue.
pub(crate) fn resource_groups(spec: &ClusterQueueSpec) -> Vec<scenario::ResourceGroup> {
    spec.resource_groups.iter().map(resource_group).collect()
}

fn resource_group(group: &quota::ResourceGroup) -> scenario::ResourceGroup {
    let flavors = group.flavors.iter().map(|flavor| {
        let quotas = flavor.resources.iter();
        scenario::Flavor {
            name: flavor.name.clone(),
            quotas: quotas.map(|it| scenario_quota(it, "")).collect(),
        }
    });
    scenario::ResourceGroup {
        resources: group.covered_resources.clone(),
        flavors: flavors.collect(),
    }
}

fn scenario_quota(quota: &ResourceQuota, flavor: &str) -> scenario::Quota {
    scenario::Quota {
        flavor: flavor.to_owned(),
        resource: quota.name.clone(),
        nominal: AmountText::Quantity(quota.nominal_quota),
        borrowing_limit: quota.borrowing_limit.map(AmountText::Quantity),
        lending_limit: quota.lending_limit.map(AmountText::Quantity),
    }
}

fn preemption(policy: &cluster_queue::Preemption) -> scenario::Preemption {
    let limits = policy.limits.clone().unwrap_or_default();
    let count = |limit: Option<i32>| limit.map(|it| u32::try_from(it).unwrap_or_default());
    scenario::Preemption {
        within_cluster_queue: policy.within_cluster_queue,
        reclaim_within_cohort: policy.reclaim_within_cohort,
        borrow_within_cohort: policy.borrow_within_cohort.clone(),
        limits: scenario::PreemptionLimits {
            within_max_priority_threshold: limits.within_max_priority_threshold,
            reclaim_max_priority_threshold: limits.reclaim_max_priority_threshold,
            within_min_run_seconds: limits.within_min_run_seconds.map(i64::from),
            reclaim_min_run_seconds: limits.reclaim_min_run_seconds.map(i64::from),
            max_preemptions: count(limits.max_preemptions),
            max_victims_per_cycle: count(limits.max_victims_per_cycle),
            delay_seconds: limits.delay_seconds.map(i64::from),
        },
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "weights are small numbers with few digits"
)]
fn fair_weight(sharing: Option<&FairSharing>) -> f64 {
    let weight = sharing.and_then(|it| it.weight);
    let milli = weight.and_then(Quantity::milli_ceil);
    milli.map_or(1.0, |it| it as f64 / 1_000.0)
}
