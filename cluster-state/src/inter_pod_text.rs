//! Texts for nodes that other pods make infeasible.

use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::placement::InterPodRejection;

/// The predicate of a sentence about one node, and about several: `does not match the pod affinity`.
#[must_use]
pub fn inter_pod_predicate(
    cluster: &GangCluster,
    rejection: InterPodRejection,
) -> (String, String) {
    let key = |key| cluster.cluster().symbols().text(key).to_owned();
    let object = match rejection {
        InterPodRejection::MissingTopologyKey { key: it } => {
            let key = key(it);
            return (
                format!("has no label {key}"),
                format!("have no label {key}"),
            );
        }
        InterPodRejection::TopologySpread { key: it } => {
            format!("the topology spread over {}", key(it))
        }
        InterPodRejection::Affinity => "the pod affinity".to_owned(),
        InterPodRejection::AntiAffinity => "the pod anti-affinity".to_owned(),
        _ => "the anti-affinity of other pods".to_owned(),
    };
    (
        format!("does not match {object}"),
        format!("do not match {object}"),
    )
}
