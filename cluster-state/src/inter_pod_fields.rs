//! Decodes what a pod requires of the pods around it: required pod affinity and anti-affinity, topology spread.

use crate::core_labels::{has_label, label_selector};
use k8s_openapi::api::core::v1::{PodAffinityTerm, PodSpec, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lockkeeper_preemption::gang::GangCluster;
use lockkeeper_preemption::placement::{
    InterPodConstraints, LabelCondition, PodAffinityTerm as CoreTerm, Requirement, Selector,
    TopologySpread,
};
use std::collections::{BTreeMap, BTreeSet};

/// The most terms, requirements and values of a pod's constraints on other pods. Those of a new pod are compared with all pods,
/// those of a bound pod are stored, and any tenant can write them.
pub(crate) const CONSTRAINTS_LEN_MAX: usize = 1_000;

/// The namespace and the labels of a pod.
#[derive(Clone, Copy, Debug)]
pub struct PodIdentity<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The labels.
    pub labels: Option<&'a BTreeMap<String, String>>,
}

/// The required terms of a pod, and its spread constraints with `DoNotSchedule`.
///
/// Source: kube-scheduler v1.37, `framework.NewPodInfo` and `filterTopologySpreadConstraints`.
pub(crate) fn inter_pod_constraints(
    gang_cluster: &mut GangCluster,
    identity: PodIdentity<'_>,
    spec: &PodSpec,
) -> InterPodConstraints {
    let affinity = affinity_terms(spec).iter();
    let affinity = affinity.map(|it| term(gang_cluster, identity, it));
    let affinity = affinity.collect();
    let anti_affinity = anti_affinity_terms(spec).iter();
    let anti_affinity = anti_affinity.map(|it| term(gang_cluster, identity, it));
    let anti_affinity = anti_affinity.collect();
    let spread = spread_constraints(spec).map(|it| spread(gang_cluster, identity, it));
    InterPodConstraints {
        affinity,
        anti_affinity,
        spread: spread.collect(),
    }
}

/// The keys of pod labels that the required terms and the spread constraints of a pod name.
#[must_use]
pub fn selected_label_keys(spec: &PodSpec) -> BTreeSet<&str> {
    let mut keys = BTreeSet::new();
    for term in affinity_terms(spec).iter().chain(anti_affinity_terms(spec)) {
        keys.extend(selector_keys(term.label_selector.as_ref()));
        let others = [&term.match_label_keys, &term.mismatch_label_keys];
        let others = others.into_iter().flatten().flatten();
        keys.extend(others.map(String::as_str));
    }
    for constraint in spread_constraints(spec) {
        keys.extend(selector_keys(constraint.label_selector.as_ref()));
        let others = constraint.match_label_keys.iter().flatten();
        keys.extend(others.map(String::as_str));
    }
    keys
}

/// How many terms, constraints, requirements and values these constraints have: each is compared with all pods.
pub(crate) fn constraints_len(constraints: &InterPodConstraints) -> usize {
    let terms = constraints
        .affinity
        .iter()
        .chain(&constraints.anti_affinity);
    let terms = terms.map(|it| {
        let namespaces = it.namespace_selector.as_ref().map_or(0, selector_len);
        let namespaces = namespaces.saturating_add(it.namespaces.len());
        namespaces.saturating_add(selector_len(&it.selector))
    });
    let spread = constraints.spread.iter();
    let all = terms.chain(spread.map(|it| selector_len(&it.selector)));
    all.fold(0, |sum, it| sum.saturating_add(it).saturating_add(1))
}

fn selector_len(selector: &Selector) -> usize {
    let requirements = selector.0.iter().map(|it| match &it.condition {
        LabelCondition::In(values) | LabelCondition::NotIn(values) => values.len(),
        _ => 0,
    });
    requirements.fold(0, |sum, it| sum.saturating_add(it).saturating_add(1))
}

fn affinity_terms(spec: &PodSpec) -> &[PodAffinityTerm] {
    let affinity = spec.affinity.as_ref();
    let affinity = affinity.and_then(|it| it.pod_affinity.as_ref());
    let required = affinity.and_then(|it| {
        it.required_during_scheduling_ignored_during_execution
            .as_deref()
    });
    required.unwrap_or_default()
}

fn anti_affinity_terms(spec: &PodSpec) -> &[PodAffinityTerm] {
    let affinity = spec.affinity.as_ref();
    let affinity = affinity.and_then(|it| it.pod_anti_affinity.as_ref());
    let required = affinity.and_then(|it| {
        it.required_during_scheduling_ignored_during_execution
            .as_deref()
    });
    required.unwrap_or_default()
}

/// The constraints that reject nodes; others only change scores.
fn spread_constraints(spec: &PodSpec) -> impl Iterator<Item = &TopologySpreadConstraint> {
    let all = spec.topology_spread_constraints.iter().flatten();
    all.filter(|it| it.when_unsatisfiable == "DoNotSchedule")
}

fn selector_keys(selector: Option<&LabelSelector>) -> impl Iterator<Item = &str> {
    let labels = selector.and_then(|it| it.match_labels.as_ref());
    let labels = labels.into_iter().flatten().map(|(key, _)| key.as_str());
    let expressions = selector.and_then(|it| it.match_expressions.as_ref());
    let expressions = expressions.into_iter().flatten().map(|it| it.key.as_str());
    labels.chain(expressions)
}

fn term(
    gang_cluster: &mut GangCluster,
    identity: PodIdentity<'_>,
    term: &PodAffinityTerm,
) -> CoreTerm {
    let mut selector = selector(gang_cluster, term.label_selector.as_ref());
    if term.label_selector.is_some() {
        let same = with_own_values(gang_cluster, identity, term.match_label_keys.as_deref());
        let other = with_own_values(gang_cluster, identity, term.mismatch_label_keys.as_deref());
        let other = other.into_iter().map(|it| Requirement {
            condition: match it.condition {
                LabelCondition::In(values) => LabelCondition::NotIn(values),
                condition => condition,
            },
            ..it
        });
        selector = and(selector, same.into_iter().chain(other));
    }
    let namespaces = term.namespaces.as_deref().unwrap_or_default();
    // Only a term that names neither is about the pod's own namespace.
    let own = namespaces.is_empty() && term.namespace_selector.is_none();
    let own = own.then_some(identity.namespace);
    let namespaces = namespaces.iter().map(String::as_str).chain(own);
    let mut namespaces: Vec<_> = namespaces.map(|it| gang_cluster.symbol(it)).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let namespace_selector = term.namespace_selector.as_ref();
    CoreTerm {
        topology_key: gang_cluster.symbol(&term.topology_key),
        namespaces: namespaces.into(),
        namespace_selector: namespace_selector.map(|it| self::selector(gang_cluster, Some(it))),
        selector,
    }
}

fn spread(
    gang_cluster: &mut GangCluster,
    identity: PodIdentity<'_>,
    constraint: &TopologySpreadConstraint,
) -> TopologySpread {
    let mut selector = selector(gang_cluster, constraint.label_selector.as_ref());
    if constraint.label_selector.is_some() {
        let keys = constraint.match_label_keys.as_deref();
        let same = with_own_values(gang_cluster, identity, keys);
        selector = and(selector, same.into_iter());
    }
    let min_domains = constraint.min_domains.unwrap_or(1);
    TopologySpread {
        topology_key: gang_cluster.symbol(&constraint.topology_key),
        selector,
        max_skew: i64::from(constraint.max_skew),
        min_domains: usize::try_from(min_domains).unwrap_or_default(),
        honors_node_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
        honors_node_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
    }
}

/// The requirements that these labels have the values of the pod. A label that the pod does not have requires nothing.
fn with_own_values(
    gang_cluster: &mut GangCluster,
    identity: PodIdentity<'_>,
    keys: Option<&[String]>,
) -> Vec<Requirement> {
    let values = keys.into_iter().flatten();
    let values = values.filter_map(|key| Some((key, identity.labels?.get(key)?)));
    let requirements = values.map(|(key, value)| has_label(gang_cluster, key, value));
    requirements.collect()
}

/// A selector of pods or namespaces. Without one, or with an invalid one, nothing is selected.
fn selector(gang_cluster: &mut GangCluster, selector: Option<&LabelSelector>) -> Selector {
    let decoded = selector.map(|selector| {
        let expressions = selector.match_expressions.iter().flatten();
        let expressions = expressions.map(|it| {
            let values = it.values.as_deref().unwrap_or_default();
            (&*it.key, &*it.operator, values)
        });
        label_selector(
            gang_cluster,
            selector.match_labels.iter().flatten(),
            expressions,
        )
    });
    decoded.and_then(Result::ok).unwrap_or_else(|| {
        let key = gang_cluster.symbol("");
        Selector(Box::new([Requirement {
            key,
            condition: LabelCondition::In(Box::new([])),
        }]))
    })
}

fn and(selector: Selector, others: impl Iterator<Item = Requirement>) -> Selector {
    Selector(selector.0.into_iter().chain(others).collect())
}
