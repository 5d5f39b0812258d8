//! The use of quota by each cohort and ClusterQueue over time.

use crate::quota_steps::{cohort_quota, queue_quota};
use crate::quota_tree::QuotaTree;
use crate::step_series::{Steps, sum_steps};
use lockkeeper_simulate::timeline::{JobTrace, Timeline, UsageHistory, usage_history};
use std::collections::BTreeSet;

/// The quota and the use of all nodes of the quota trees.
#[derive(Clone, Debug)]
pub(crate) struct QuotaUsage<'a> {
    pub(crate) tree: QuotaTree<'a>,
    /// All resources with quota or use, by name.
    pub(crate) resources: Vec<String>,
    histories: Vec<UsageHistory>,
    trace: &'a JobTrace,
}

impl<'a> QuotaUsage<'a> {
    pub(crate) fn new(trace: &'a JobTrace, timeline: &Timeline) -> Self {
        let histories = usage_history(trace, timeline);
        let mut resources: BTreeSet<&str> = histories.iter().map(|it| &*it.resource).collect();
        let queues = trace.cluster_queues.iter();
        let groups = queues.flat_map(|it| &it.resource_groups);
        resources.extend(groups.flat_map(|it| &it.resources).map(String::as_str));
        let resources = resources.into_iter().map(str::to_owned).collect();
        Self {
            tree: QuotaTree::new(trace),
            resources,
            histories,
            trace,
        }
    }

    /// Returns the use of a node, those below it included.
    pub(crate) fn usage(&self, node: usize, resource: &str) -> Steps {
        let queues = self.tree.subtree(node).iter().filter_map(|it| it.queue);
        let queues: BTreeSet<usize> = queues.collect();
        let histories = self.histories.iter();
        let histories =
            histories.filter(|it| it.resource == resource && queues.contains(&it.queue));
        sum_steps(histories.map(|it| &it.steps))
    }

    /// Returns the nominal quota of a node, those below it included.
    pub(crate) fn nominal(&self, node: usize, resource: &str) -> Steps {
        let nodes = self.tree.subtree(node).iter();
        let quotas = nodes.map(|it| match it.queue {
            Some(queue) => queue_quota(self.trace, queue, resource).nominal,
            None => cohort_quota(self.trace, it.name, resource),
        });
        let quotas: Vec<Steps> = quotas.collect();
        sum_steps(&quotas)
    }

    /// Returns the use of a ClusterQueue by flavor.
    pub(crate) fn by_flavor(&self, queue: usize, resource: &str) -> Vec<(&str, &Steps)> {
        let histories = self.histories.iter();
        let histories = histories.filter(|it| it.queue == queue && it.resource == resource);
        histories.map(|it| (&*it.flavor, &it.steps)).collect()
    }
}
