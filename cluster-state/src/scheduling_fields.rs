//! Decodes the scheduling fields of Kubernetes' objects: labels, selectors, affinity, tolerations, taints.

use crate::core_labels::{condition, has_label};
use crate::host_ports::host_ports;
use crate::inter_pod_fields::{PodIdentity, inter_pod_constraints};
use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};
use lockkeeper_preemption::Amount;
use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::placement::{
    Affinity, AffinityTerm, LabelCondition, Requirement, Selector, Shape, Taint as CoreTaint,
    TaintEffect, Toleration as CoreToleration, TolerationCondition,
};

/// What decides on which nodes a pod may run, except its requests, which the caller adds: node selector, required affinity,
/// tolerations, host ports, and the pods around it. A term that Kubernetes would reject matches no node; a toleration with `Gt`
/// or `Lt` tolerates no taint.
#[must_use]
pub fn pod_shape(
    gang_cluster: &mut GangCluster,
    identity: PodIdentity<'_>,
    spec: &PodSpec,
) -> Shape {
    let selector = spec.node_selector.iter().flatten();
    let selector = selector.map(|(key, value)| has_label(gang_cluster, key, value));
    let selector = Selector(selector.collect());
    let of_nodes = spec
        .affinity
        .as_ref()
        .and_then(|it| it.node_affinity.as_ref());
    let required = of_nodes.and_then(|affinity| {
        affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let affinity = required.map(|required| {
        let terms = required.node_selector_terms.iter();
        Affinity(terms.map(|it| term(gang_cluster, it)).collect())
    });
    let tolerations = spec.tolerations.iter().flatten();
    Shape {
        requests: host_ports(spec).map(|it| (it, Amount::new(1))).collect(),
        has_unknown_resource: false,
        selector,
        affinity,
        tolerations: tolerations
            .filter_map(|it| toleration(gang_cluster, it))
            .collect(),
        inter_pod: inter_pod_constraints(gang_cluster, identity, spec),
    }
}

fn term(gang_cluster: &mut GangCluster, term: &NodeSelectorTerm) -> AffinityTerm {
    let mut all = |list: &Option<Vec<NodeSelectorRequirement>>| {
        let list = list.iter().flatten();
        list.map(|terms| {
            let values = terms.values.as_deref().unwrap_or_default();
            requirement(gang_cluster, &terms.key, &terms.operator, values)
        })
        .collect()
    };
    AffinityTerm {
        labels: all(&term.match_expressions),
        fields: all(&term.match_fields),
    }
}

fn requirement(
    gang_cluster: &mut GangCluster,
    key: &str,
    operator: &str,
    values: &[String],
) -> Requirement {
    let nothing = LabelCondition::In(Box::new([]));
    let number = values.first().and_then(|it| it.parse::<i64>().ok());
    Requirement {
        key: gang_cluster.symbol(key),
        condition: match operator {
            "Gt" => number.map_or(nothing, LabelCondition::GreaterThan),
            "Lt" => number.map_or(nothing, LabelCondition::LessThan),
            _ => condition(gang_cluster, operator, values).unwrap_or(nothing),
        },
    }
}

/// A taint of a node; `None` if its effect is unknown.
#[must_use]
pub fn taint(gang_cluster: &mut GangCluster, taint: &Taint) -> Option<CoreTaint> {
    Some(CoreTaint {
        key: gang_cluster.symbol(&taint.key),
        value: gang_cluster.symbol(taint.value.as_deref().unwrap_or_default()),
        effect: effect(&taint.effect)?,
    })
}

/// A toleration; `None` if it tolerates no taint: its operator or its effect is unknown.
pub(crate) fn toleration(
    gang_cluster: &mut GangCluster,
    toleration: &Toleration,
) -> Option<CoreToleration> {
    let key = toleration.key.as_deref().filter(|it| !it.is_empty());
    let given = toleration.effect.as_deref().filter(|it| !it.is_empty());
    let value = toleration.value.as_deref().unwrap_or_default();
    Some(CoreToleration {
        key: key.map(|it| gang_cluster.symbol(it)),
        condition: match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => TolerationCondition::Equal(gang_cluster.symbol(value)),
            "Exists" => TolerationCondition::Exists,
            _ => return None,
        },
        effect: match given {
            Some(given) => Some(effect(given)?),
            None => None,
        },
    })
}

fn effect(name: &str) -> Option<TaintEffect> {
    match name {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        _ => None,
    }
}
