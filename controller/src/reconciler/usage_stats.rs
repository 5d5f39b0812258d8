//! Usage of quota and pending workloads, for metrics.

use super::state::ReconcilerState;
use super::status::pending_reason::reported_reason;
use lockkeeper_preemption::Amount;
use std::collections::BTreeMap;

/// The quota of a resource of a flavor in a ClusterQueue. Amounts are in the base unit of the resource: cores, bytes,
/// numbers of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaUsage<'a> {
    /// The name of the ClusterQueue.
    pub cluster_queue: &'a str,
    /// The name of the `ResourceFlavor`.
    pub flavor: &'a str,
    /// The name of the resource.
    pub resource: &'a str,
    /// What admitted workloads use.
    pub used: f64,
    /// The nominal quota.
    pub nominal: f64,
}

pub(super) fn quota_usage(state: &ReconcilerState) -> Vec<QuotaUsage<'_>> {
    let core = state.cluster.state();
    let mut out = Vec::new();
    for (cluster_queue, node) in core.queues() {
        let view = core.node_view(node);
        for (of, used) in view.usage() {
            let resource = core.resource_name(of.resource);
            let number = |amount| base_units(resource, amount);
            out.push(QuotaUsage {
                cluster_queue,
                flavor: core.flavor_name(of.flavor),
                resource,
                used: number(used),
                nominal: number(view.nominal(of)),
            });
        }
    }
    out
}

#[expect(
    clippy::cast_precision_loss,
    reason = "metrics are floats; 16 significant digits are enough"
)]
fn base_units(resource: &str, amount: Amount) -> f64 {
    let number = amount.get() as f64;
    // The core counts cpu in thousandths.
    if resource == "cpu" {
        number / 1000.0
    } else {
        number
    }
}

pub(super) fn unadmitted_workloads(
    state: &ReconcilerState,
) -> BTreeMap<(&str, &'static str), usize> {
    let objects = state.cluster.objects();
    let mut counts = BTreeMap::new();
    for (key, workload) in &state.model.workloads {
        let Some(reason) = reported_reason(workload) else {
            continue;
        };
        let local_queue = workload.object.spec.queue_name.as_deref();
        let local_queue = objects.local_queue(key.namespace(), local_queue.unwrap_or_default());
        // Only the names of existing ClusterQueues: a tenant could write any number of others.
        let cluster_queue = local_queue
            .map(|it| it.cluster_queue.as_str())
            .filter(|it| objects.has_cluster_queue(it))
            .unwrap_or_default();
        let count: &mut usize = counts.entry((cluster_queue, reason)).or_default();
        *count = count.saturating_add(1);
    }
    counts
}
