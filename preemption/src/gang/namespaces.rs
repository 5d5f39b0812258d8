//! Namespaces, which terms of pod affinity select by their labels.

use super::cluster::GangCluster;
use crate::placement::Labels;

/// Sets the labels of a namespace. See
/// [`Cluster::set_namespace`](crate::placement::Cluster::set_namespace).
pub fn set_namespace(cluster: &mut GangCluster, name: &str, labels: Labels) -> bool {
    cluster.cluster.set_namespace(name, labels)
}
