//! The resources of requests. Only nodes give a resource an id: a tenant chooses the names in requests, and each id costs
//! an amount on every node in every decision.

use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::{Amount, ResourceId};
use std::collections::BTreeMap;

/// Resources of every node, which have ids from the start: pods may be listed before nodes.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Requests by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SplitRequests {
    /// Of resources that a node has or had.
    pub(super) known: Vec<(ResourceId, Amount)>,
    /// Of resources that no node has, by name.
    pub(super) unknown: Vec<(String, Amount)>,
}

impl SplitRequests {
    pub(super) fn new(cluster: &GangCluster, requests: BTreeMap<String, Amount>) -> Self {
        let mut split = Self::default();
        for (name, amount) in requests {
            match cluster.cluster().known_resource(&name) {
                Some(id) => split.known.push((id, amount)),
                None => split.unknown.push((name, amount)),
            }
        }
        split
    }
}

/// Gives ids to the resources of every node.
pub(super) fn add_standard_resources(cluster: &mut GangCluster) {
    for name in STANDARD {
        cluster.resource(name);
    }
}
