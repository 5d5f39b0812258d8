//! The placement of a workload on nodes, in an answer. Field names are those of `--output json`; docs/explain.md describes them.

use serde::Serialize;
use std::collections::BTreeMap;

/// Whether the pods of a workload fit on nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PlacementResult {
    /// All pods fit.
    Fits,
    /// All pods fit after the preemption of the victims.
    Preempts,
    /// All pods fit when pods that terminate, or whose workload is evicted, are gone.
    WaitsForVictims,
    /// The pods do not fit, even after preemption.
    DoesNotFit,
}

/// The placement of a workload on nodes, if it is placed now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePlacementAnswer {
    /// Whether the pods fit.
    pub result: PlacementResult,
    /// The obstacles as in the condition; empty if the pods fit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The nodes of the pods, if they fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pod_sets: Vec<PlacedPods>,
    /// The units that are preempted for their room.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<NodeVictim>,
    /// What each node has for one pod of each pod set: the first nodes of each, those where a pod fits first.
    pub nodes: Vec<NodeAnswer>,
}

/// The nodes of a pod set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacedPods {
    /// The pod set.
    pub pod_set: String,
    /// The number of pods by node.
    pub nodes: BTreeMap<String, i32>,
}

/// A unit that is preempted for its room on nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeVictim {
    /// `Workload` or `Pod`.
    pub kind: &'static str,
    /// `namespace/name`.
    pub name: String,
    /// Whether its preemption violates a disruption budget.
    pub violates_budget: bool,
}

/// What a node has for one pod of a pod set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAnswer {
    /// The node.
    pub node: String,
    /// The pod set.
    pub pod_set: String,
    /// What is free of each requested resource, as a quantity.
    pub free: BTreeMap<String, String>,
    /// Why no pod fits now; absent if one fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Whether one fits without all pods of lower priority, if none fits now.
    pub fits_after_preemption: bool,
}
