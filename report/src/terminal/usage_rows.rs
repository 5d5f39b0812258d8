//! The quota and the use of cohorts and ClusterQueues as rows of a list.

use crate::node_rows::node_rows;
use crate::quota_usage::QuotaUsage;
use crate::step_series::{integral, peak};

/// A resource of a cohort or a ClusterQueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageRow {
    /// The index in the quota tree.
    pub(crate) node: usize,
    pub(crate) name: String,
    pub(crate) is_queue: bool,
    pub(crate) depth: usize,
    /// Whether it is the first row of its node.
    pub(crate) is_first: bool,
    pub(crate) resource: String,
    /// Amounts times seconds.
    pub(crate) nominal: i128,
    pub(crate) used: i128,
    pub(crate) peak: i64,
}

/// All rows, and the number of nodes that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageRows {
    pub(crate) rows: Vec<UsageRow>,
    pub(crate) omitted: usize,
}

impl UsageRows {
    /// Computes the rows until a time in seconds.
    pub(crate) fn new(usage: &QuotaUsage<'_>, until_s: i64) -> Self {
        let (nodes, omitted) = node_rows(usage);
        let rows = nodes.iter().flat_map(|node| {
            let rows = node.rows.iter().enumerate();
            rows.map(|(at, row)| UsageRow {
                node: node.node,
                name: node.name.to_owned(),
                is_queue: node.is_queue,
                depth: node.depth,
                is_first: at == 0,
                resource: row.resource.to_owned(),
                nominal: integral(&row.nominal, until_s),
                used: integral(&row.usage, until_s),
                peak: peak(&row.usage),
            })
        });
        Self {
            rows: rows.collect(),
            omitted,
        }
    }

    /// Returns the row of the next resource of the node of a row, after its last one the first.
    pub(crate) fn next_resource(&self, at: usize) -> usize {
        let Some(row) = self.rows.get(at) else {
            return 0;
        };
        let next = at.saturating_add(1);
        match self.rows.get(next) {
            Some(it) if it.node == row.node => next,
            _ => {
                let first = self.rows.iter().position(|it| it.node == row.node);
                first.unwrap_or(at)
            }
        }
    }
}
