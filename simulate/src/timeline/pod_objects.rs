//! Nodes and pods of a simulation as objects of Kubernetes, which the placement of the controller reads.

use super::node_trace::TraceNode;
use k8s_openapi::api::core::v1::{
    Container, Node, NodeStatus, Pod, PodSpec, PodStatus, PodTemplateSpec, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use k8s_openapi::jiff::Timestamp;
use lockkeeper_scenario::{AmountText, PodSet};
use std::collections::BTreeMap;

/// The nodes of one entry of a trace.
pub(super) fn nodes(of: &TraceNode) -> impl Iterator<Item = Node> + '_ {
    let allocatable: BTreeMap<String, Quantity> = amounts(&of.allocatable, 1);
    of.names().map(move |name| Node {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some(of.labels.clone()),
            ..ObjectMeta::default()
        },
        status: Some(NodeStatus {
            allocatable: Some(allocatable.clone()),
            ..NodeStatus::default()
        }),
        ..Node::default()
    })
}

/// The template of the pods of a pod set: each requests an equal part, rounded up.
pub(super) fn template(pod_set: &PodSet) -> PodTemplateSpec {
    let requests = amounts(&pod_set.requests, pod_set.count);
    PodTemplateSpec {
        metadata: None,
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "main".to_owned(),
                resources: Some(ResourceRequirements {
                    requests: Some(requests),
                    ..ResourceRequirements::default()
                }),
                ..Container::default()
            }],
            ..PodSpec::default()
        }),
    }
}

/// A running pod of a job. The uid of its controller is `owner`.
pub(super) struct RunningPod<'a> {
    pub(super) name: &'a str,
    pub(super) owner: &'a str,
    pub(super) node: &'a str,
    pub(super) priority: i32,
    pub(super) started_at_s: i64,
}

impl RunningPod<'_> {
    /// The object.
    pub(super) fn object(&self, template: &PodTemplateSpec) -> Pod {
        let owner = OwnerReference {
            uid: self.owner.to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        let started_at = Timestamp::from_second(self.started_at_s).ok().map(Time);
        Pod {
            metadata: ObjectMeta {
                name: Some(self.name.to_owned()),
                uid: Some(self.name.to_owned()),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                node_name: Some(self.node.to_owned()),
                priority: Some(self.priority),
                ..template.spec.clone().unwrap_or_default()
            }),
            status: Some(PodStatus {
                start_time: started_at,
                ..PodStatus::default()
            }),
        }
    }
}

/// Each amount divided by a number, rounded up. `cpu` is in thousandths.
fn amounts(of: &BTreeMap<String, AmountText>, parts: i64) -> BTreeMap<String, Quantity> {
    let amounts = of.iter().filter_map(|(resource, amount)| {
        let each = per_part(amount.in_core_units(resource)?, parts)?;
        let unit = if resource == "cpu" { "m" } else { "" };
        Some((resource.clone(), Quantity(format!("{each}{unit}"))))
    });
    amounts.collect()
}

/// A part of an amount, rounded up; `None` without parts.
pub(super) fn per_part(amount: i64, parts: i64) -> Option<i64> {
    let whole = amount.checked_div(parts)?;
    let has_rest = amount.checked_rem(parts)? > 0;
    Some(whole.saturating_add(i64::from(has_rest)))
}
