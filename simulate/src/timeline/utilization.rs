//! The part of the nominal quotas that was in use.

use super::job_trace::JobTrace;
use super::result::{QuotaUsage, Timeline};
use lockkeeper_scenario::ResourceGroup;

/// The nominal quota of one queue for a flavor and resource, times seconds until a time. Zero without such a quota.
fn nominal_seconds(trace: &JobTrace, usage: &QuotaUsage, until_s: i64) -> i128 {
    let queues = trace.cluster_queues.iter();
    let queue = queues.filter(|it| it.name == usage.cluster_queue);
    let first = queue.map(|it| (0, it.resource_groups.as_slice()));
    let changes = trace.changes.iter();
    let changes = changes.filter(|it| it.cluster_queue == usage.cluster_queue);
    let later = changes.map(|it| (it.at, it.resource_groups.as_slice()));
    let steps: Vec<(i64, &[ResourceGroup])> = first.chain(later).collect();
    let ends = steps.iter().skip(1).map(|(at_s, _)| *at_s);
    let ends = ends.chain(std::iter::once(until_s));
    let amounts = steps.iter().zip(ends).map(|((from_s, groups), to_s)| {
        let seconds = to_s.min(until_s).saturating_sub(*from_s).max(0);
        i128::from(nominal(groups, usage)).saturating_mul(i128::from(seconds))
    });
    amounts.fold(0, i128::saturating_add)
}

fn nominal(groups: &[ResourceGroup], usage: &QuotaUsage) -> i64 {
    let flavors = groups.iter().flat_map(|group| &group.flavors);
    let flavors = flavors.filter(|it| it.name == usage.flavor);
    let quotas = flavors.flat_map(|it| &it.quotas);
    let mut quotas = quotas.filter(|it| it.resource == usage.resource);
    let amount = quotas.next().map(|it| it.nominal);
    let amount = amount.and_then(|it| it.in_core_units(&usage.resource));
    amount.unwrap_or_default()
}

/// Returns the part of the nominal quota that a queue has used until the makespan (of a loop until its end), from 0; above 1 if it has borrowed.
/// `None` without nominal quota.
#[must_use]
#[allow(
    clippy::cast_precision_loss,
    reason = "a ratio for people, which needs a few digits"
)]
pub fn utilization(trace: &JobTrace, timeline: &Timeline, usage: &QuotaUsage) -> Option<f64> {
    let nominal = nominal_seconds(trace, usage, timeline.measured_until_s());
    (nominal > 0).then(|| usage.integral as f64 / nominal as f64)
}
