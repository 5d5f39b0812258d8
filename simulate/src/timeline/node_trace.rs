//! The nodes of a trace, and which ClusterQueues place their jobs on them.

use super::trace_error::TraceError;
use lockkeeper_api::cluster_queue::PlacementPolicy;
use lockkeeper_scenario::AmountText;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The most nodes of a trace.
const NODES_MAX: u64 = 50_000;

/// The placement of jobs on nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TracePlacement {
    /// `Nodes` by default; with `None` nodes are not considered.
    #[serde(default = "nodes_policy")]
    pub policy: PlacementPolicy,
    /// The ClusterQueues with the policy; all by default.
    #[serde(default)]
    pub cluster_queues: Option<Vec<String>>,
    /// The nodes.
    #[serde(default)]
    pub nodes: Vec<TraceNode>,
    /// The flavors whose pods run on some of the nodes only.
    #[serde(default)]
    pub flavors: Vec<TraceFlavor>,
}

/// Equal nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceNode {
    /// Its name; of several nodes, the name before `-0`, `-1`, and so on.
    pub name: String,
    /// How many there are.
    #[serde(default)]
    pub count: Option<u32>,
    /// Their labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The allocatable amounts of each. Without `pods` a node takes any number of pods.
    pub allocatable: BTreeMap<String, AmountText>,
}

/// A flavor with the labels of its nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceFlavor {
    /// Its name.
    pub name: String,
    /// The labels of its nodes.
    #[serde(default)]
    pub node_labels: BTreeMap<String, String>,
}

const fn nodes_policy() -> PlacementPolicy {
    PlacementPolicy::Nodes
}

impl TracePlacement {
    /// Whether jobs of any ClusterQueue are placed.
    pub(super) fn is_on(&self) -> bool {
        self.policy == PlacementPolicy::Nodes
    }

    /// Whether the jobs of a ClusterQueue are placed.
    pub(super) fn places(&self, cluster_queue: &str) -> bool {
        let named = self.cluster_queues.as_ref();
        self.is_on() && named.is_none_or(|it| it.iter().any(|name| name == cluster_queue))
    }

    /// The labels of the nodes of a flavor.
    pub(super) fn flavor_labels(&self, flavor: &str) -> Option<&BTreeMap<String, String>> {
        let mut flavors = self.flavors.iter();
        flavors
            .find(|it| it.name == flavor)
            .map(|it| &it.node_labels)
    }

    /// Checks names, numbers and amounts.
    ///
    /// # Errors
    ///
    /// The first mistake, with the path of its field.
    pub(super) fn check(&self, queues: &BTreeSet<&str>) -> Result<(), TraceError> {
        for (at, name) in self.cluster_queues.iter().flatten().enumerate() {
            if !queues.contains(name.as_str()) {
                return Err(TraceError::UnknownQueue {
                    at: format!("placement.clusterQueues[{at}]"),
                    name: name.clone(),
                });
            }
        }
        let mut names = BTreeSet::new();
        let mut count = 0_u64;
        for (at, node) in self.nodes.iter().enumerate() {
            let path = |field: &str| format!("placement.nodes[{at}].{field}");
            for name in node
                .names()
                .take(usize::try_from(NODES_MAX).unwrap_or(usize::MAX))
            {
                if !names.insert(name.clone()) {
                    return Err(TraceError::DuplicateNode {
                        at: path("name"),
                        name,
                    });
                }
            }
            count = count.saturating_add(u64::from(node.count()));
            if node.count() == 0 || count > NODES_MAX {
                return Err(TraceError::NodeCount {
                    at: path("count"),
                    max: NODES_MAX,
                });
            }
            let mut amounts = node.allocatable.iter();
            let bad = amounts.find(|(name, it)| it.in_core_units(name).is_none_or(|it| it < 0));
            if let Some((resource, _)) = bad {
                return Err(TraceError::NodeAmount {
                    at: path("allocatable"),
                    resource: resource.clone(),
                });
            }
        }
        Ok(())
    }
}

impl TraceNode {
    /// The number of nodes.
    pub(super) fn count(&self) -> u32 {
        self.count.unwrap_or(1)
    }

    /// The names of the nodes.
    pub(super) fn names(&self) -> impl Iterator<Item = String> + '_ {
        let number = |at: u32| match self.count {
            None => self.name.clone(),
            Some(_) => format!("{}-{at}", self.name),
        };
        (0..self.count()).map(number)
    }
}
