//! Nodes and disruption budgets as values of the core.

use crate::core_labels::{label_selector, labels};
use crate::quantities::in_core_units;
use crate::scheduling_fields::taint;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use lockkeeper_api::quantity::Quantity;
use lockkeeper_preemption::gang::{BudgetSpec, GangCluster};
use lockkeeper_preemption::placement::{HostSpec, Labels, Selector, Taint};
use lockkeeper_preemption::{Amount, BudgetId, ResourceId};
use std::collections::BTreeMap;

/// The fields of a node that decide about placement. Heartbeats of the node do not change them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeValues {
    allocatable: Vec<(ResourceId, Amount)>,
    labels: Labels,
    taints: Vec<Taint>,
    is_unschedulable: bool,
}

impl NodeValues {
    /// Reads a node. A taint with an unknown effect, and an amount that is not a quantity, is ignored: the API server
    /// rejects both.
    pub(super) fn from_node(cluster: &mut GangCluster, node: &Node) -> Self {
        let allocatable = node.status.as_ref().and_then(|it| it.allocatable.as_ref());
        let allocatable = allocatable.into_iter().flatten();
        let allocatable = allocatable.filter_map(|(resource, text)| {
            let quantity: Quantity = text.0.parse().ok()?;
            // More than 63 bits is as good as unlimited.
            let amount = in_core_units(resource, quantity).map_or(Amount::UNLIMITED, Amount::new);
            Some((cluster.resource(resource), amount.or_zero()))
        });
        let allocatable = allocatable.collect();
        let spec = node.spec.as_ref();
        let taints = spec.and_then(|it| it.taints.as_ref());
        let taints = taints.into_iter().flatten();
        let taints = taints.filter_map(|it| taint(cluster, it)).collect();
        let no_labels = BTreeMap::new();
        Self {
            allocatable,
            labels: labels(cluster, node.metadata.labels.as_ref().unwrap_or(&no_labels)),
            taints,
            is_unschedulable: spec.and_then(|it| it.unschedulable).unwrap_or_default(),
        }
    }

    /// The input of the core. Nodes are tried by name, since all positions are equal.
    pub(super) fn spec<'a>(&self, name: &'a str) -> HostSpec<'a> {
        HostSpec {
            name,
            position: 0,
            allocatable: self.allocatable.clone(),
            labels: self.labels.clone(),
            taints: self.taints.clone(),
            is_unschedulable: self.is_unschedulable,
        }
    }
}

/// The fields of a disruption budget that protect pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BudgetValues {
    selector: Selector,
    allowed: i32,
    disrupted: Vec<String>,
}

impl BudgetValues {
    /// Reads a budget. As in kube-scheduler, one without a selector, or with an invalid one, protects no pod.
    pub(super) fn from_budget(cluster: &mut GangCluster, budget: &PodDisruptionBudget) -> Self {
        let selector = budget.spec.as_ref().and_then(|it| it.selector.as_ref());
        let selector = selector.map(|selector| {
            let expressions = selector.match_expressions.iter().flatten();
            let expressions = expressions.map(|it| {
                let values = it.values.as_deref().unwrap_or_default();
                (&*it.key, &*it.operator, values)
            });
            label_selector(cluster, selector.match_labels.iter().flatten(), expressions)
        });
        let status = budget.status.as_ref();
        let disrupted = status.and_then(|it| it.disrupted_pods.as_ref());
        Self {
            selector: selector.and_then(Result::ok).unwrap_or_default(),
            allowed: status
                .and_then(|it| it.disruptions_allowed)
                .unwrap_or_default(),
            disrupted: disrupted
                .into_iter()
                .flatten()
                .map(|(pod, _)| pod.clone())
                .collect(),
        }
    }

    /// Adds or updates the budget in the core.
    pub(super) fn apply(&self, cluster: &mut GangCluster, namespace: &str, name: &str) -> BudgetId {
        cluster.set_budget(BudgetSpec {
            namespace,
            name,
            selector: self.selector.clone(),
            allowed: self.allowed,
            disrupted: self.disrupted.iter().map(String::as_str).collect(),
        })
    }
}
