//! The quota and the use of cohorts and ClusterQueues, by resource.

use crate::quota_usage::QuotaUsage;
use crate::step_series::Steps;

/// The most rows.
const ROWS_MAX: usize = 500;

/// A cohort or a ClusterQueue, with a row for each resource.
#[derive(Clone, Debug)]
pub(crate) struct NodeRows<'a> {
    /// The index in the quota tree.
    pub(crate) node: usize,
    pub(crate) name: &'a str,
    pub(crate) is_queue: bool,
    pub(crate) depth: usize,
    pub(crate) rows: Vec<NodeRow<'a>>,
}

/// The use of one resource by one node.
#[derive(Clone, Debug)]
pub(crate) struct NodeRow<'a> {
    pub(crate) resource: &'a str,
    pub(crate) nominal: Steps,
    pub(crate) usage: Steps,
}

/// Returns the resources with quota or use of the first nodes, and the number of nodes that are left out.
pub(crate) fn node_rows<'a>(usage: &'a QuotaUsage<'_>) -> (Vec<NodeRows<'a>>, usize) {
    let nodes = usage.tree.nodes.iter().enumerate();
    let nodes = nodes.map(|(at, node)| {
        let rows = usage.resources.iter().map(|resource| NodeRow {
            resource,
            nominal: usage.nominal(at, resource),
            usage: usage.usage(at, resource),
        });
        let rows = rows.filter(|it| !it.nominal.is_empty() || !it.usage.is_empty());
        NodeRows {
            node: at,
            name: node.name,
            is_queue: node.queue.is_some(),
            depth: node.depth,
            rows: rows.collect(),
        }
    });
    let nodes_max = ROWS_MAX
        .checked_div(usage.resources.len().max(1))
        .unwrap_or_default();
    let shown: Vec<NodeRows<'_>> = nodes.take(nodes_max).collect();
    let omitted = usage.tree.nodes.len().saturating_sub(shown.len());
    (shown, omitted)
}
