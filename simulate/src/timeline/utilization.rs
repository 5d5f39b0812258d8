//! The part of the nominal quotas that was in use.

use super::job_trace::JobTrace;
use super::result::{QuotaUsage, Timeline};
use lockkeeper_scenario::ResourceGroup;
use std::collections::{BTreeMap, BTreeSet};

/// A quota: ClusterQueue, flavor and resource.
type QuotaKey<'a> = (&'a str, &'a str, &'a str);

/// The nominal quota of one queue for a flavor and resource over time: times in seconds and amounts from then on.
pub(super) fn nominal_steps(trace: &JobTrace, usage: &QuotaUsage) -> Vec<(i64, i64)> {
    steps_of(
        trace,
        (&usage.cluster_queue, &usage.flavor, &usage.resource),
    )
}

fn steps_of(trace: &JobTrace, key: QuotaKey<'_>) -> Vec<(i64, i64)> {
    let queues = trace.cluster_queues.iter();
    let queue = queues.filter(|it| it.name == key.0);
    let first = queue.map(|it| (0, it.resource_groups.as_slice()));
    let changes = trace.changes.iter();
    let changes = changes.filter(|it| it.cluster_queue == key.0);
    let later = changes.map(|it| (it.at, it.resource_groups.as_slice()));
    let steps = first.chain(later);
    steps
        .map(|(at_s, groups)| (at_s, nominal(groups, key)))
        .collect()
}

/// The amounts times seconds of steps until a time.
fn integral(steps: &[(i64, i64)], until_s: i64) -> i128 {
    let ends = steps.iter().skip(1).map(|(at, _)| *at);
    let ends = ends.chain(std::iter::once(until_s));
    let amounts = steps.iter().zip(ends).map(|((from_s, amount), to_s)| {
        let seconds = to_s.min(until_s).saturating_sub(*from_s).max(0);
        i128::from(*amount).saturating_mul(i128::from(seconds))
    });
    amounts.fold(0, i128::saturating_add)
}

fn nominal(groups: &[ResourceGroup], (_, flavor, resource): QuotaKey<'_>) -> i64 {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    let flavors = flavors.filter(|it| it.name == flavor);
    let quotas = flavors.flat_map(|it| &it.quotas);
    let mut quotas = quotas.filter(|it| it.resource == resource);
    let amount = quotas.next().map(|it| it.nominal);
    let amount = amount.and_then(|it| it.in_core_units(resource));
    amount.unwrap_or_default()
}

/// The nominal quota of all ClusterQueues and cohorts times seconds until a time, by flavor and resource.
pub(super) fn capacity_seconds(trace: &JobTrace, until_s: i64) -> BTreeMap<(String, String), i128> {
    let queues = trace.cluster_queues.iter();
    let queues = queues.map(|it| (it.name.as_str(), it.resource_groups.as_slice()));
    let changes = trace.changes.iter();
    let changes = changes.map(|it| (it.cluster_queue.as_str(), it.resource_groups.as_slice()));
    let keys = queues.chain(changes).flat_map(|(queue, groups)| {
        let flavors = groups.iter().flat_map(|it| &it.flavors);
        flavors.flat_map(move |flavor| {
            let quotas = flavor.quotas.iter();
            quotas.map(move |it| (queue, flavor.name.as_str(), it.resource.as_str()))
        })
    });
    let keys: BTreeSet<QuotaKey<'_>> = keys.collect();
    let mut capacity: BTreeMap<(String, String), i128> = BTreeMap::new();
    let mut add = |flavor: &str, resource: &str, amount: i128| {
        let key = (flavor.to_owned(), resource.to_owned());
        let sum = capacity.entry(key).or_default();
        *sum = sum.saturating_add(amount);
    };
    for key in keys {
        add(key.1, key.2, integral(&steps_of(trace, key), until_s));
    }
    for quota in trace.cohorts.iter().flat_map(|it| &it.quotas) {
        let amount = quota.nominal.in_core_units(&quota.resource);
        let amount = amount.unwrap_or_default();
        let amount = integral(&[(0, amount)], until_s);
        add(&quota.flavor, &quota.resource, amount);
    }
    capacity
}

/// Returns the part of the nominal quota that a queue has used until the makespan (of a loop until its end), from 0; above 1 if it has borrowed.
/// `None` without nominal quota.
#[must_use]
#[allow(
    clippy::cast_precision_loss,
    reason = "a ratio for people, which needs a few digits"
)]
pub fn utilization(trace: &JobTrace, timeline: &Timeline, usage: &QuotaUsage) -> Option<f64> {
    let nominal = integral(&nominal_steps(trace, usage), timeline.measured_until_s());
    (nominal > 0).then(|| usage.integral as f64 / nominal as f64)
}
