//! The use of all quotas of a flavor or a resource together.

use super::ratio::ratio;
use super::result::Timeline;
use serde::Serialize;
use std::collections::BTreeMap;

/// The use of all quotas for a resource, of one flavor or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolMetrics {
    /// The flavor; empty for all flavors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub flavor: String,
    /// The resource.
    pub resource: String,
    /// The used part of the nominal quota of all ClusterQueues and cohorts; `None` without nominal quota.
    pub utilization: Option<f64>,
}

/// The use by flavor and resource. `capacity` has the nominal quotas times seconds.
pub(super) fn by_flavor(
    timeline: &Timeline,
    capacity: &BTreeMap<(String, String), i128>,
) -> Vec<PoolMetrics> {
    let used = timeline.usage.iter();
    let used = used.map(|it| ((it.flavor.as_str(), it.resource.as_str()), it.integral));
    let used = sums(used);
    let pools = capacity.iter().map(|((flavor, resource), capacity)| {
        let used = used.get(&(flavor.as_str(), resource.as_str()));
        pool(flavor, resource, used, *capacity)
    });
    pools.collect()
}

/// The use by resource. `capacity` has the nominal quotas times seconds.
pub(super) fn by_resource(
    timeline: &Timeline,
    capacity: &BTreeMap<&str, i128>,
) -> Vec<PoolMetrics> {
    let used = timeline.usage.iter();
    let used = sums(used.map(|it| (it.resource.as_str(), it.integral)));
    let pools = capacity
        .iter()
        .map(|(resource, capacity)| pool("", resource, used.get(resource), *capacity));
    pools.collect()
}

fn sums<K: Ord>(amounts: impl Iterator<Item = (K, i64)>) -> BTreeMap<K, i128> {
    let mut sums: BTreeMap<K, i128> = BTreeMap::new();
    for (key, amount) in amounts {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(i128::from(amount));
    }
    sums
}

fn pool(flavor: &str, resource: &str, used: Option<&i128>, capacity: i128) -> PoolMetrics {
    let used = used.copied().unwrap_or_default();
    PoolMetrics {
        flavor: flavor.to_owned(),
        resource: resource.to_owned(),
        utilization: (capacity > 0).then(|| ratio(used, capacity)),
    }
}
