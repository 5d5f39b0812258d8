//! The decisions of a cycle, with names in place of ids.

use crate::workload_store::WorkloadStore;
use lockkeeper_preemption::{Cycle, Decision, Entry, State, WorkloadId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The decisions of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleRecord {
    /// In the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionRecord>,
    /// Workloads that the namespace selector of their ClusterQueue does not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_scope: Vec<String>,
}

/// The decision on one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    /// `namespace/name`.
    pub workload: String,
    /// The version of its object.
    pub resource_version: String,
    /// One of [`Decision::NAMES`].
    pub decision: String,
    /// The flavors by pod set, of an admission or a preemption.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pod_sets: Vec<PodSetDecision>,
    /// The preempted workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<VictimRecord>,
}

/// The flavors of a pod set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSetDecision {
    /// The number of pods.
    pub count: i64,
    /// By resource.
    pub flavors: BTreeMap<String, String>,
}

/// A preempted workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VictimRecord {
    /// `namespace/name`.
    pub workload: String,
    /// As in the condition `Preempted`.
    pub reason: String,
}

/// The record of a cycle that has just run.
pub(crate) fn cycle_record(state: &State, workloads: &WorkloadStore, cycle: &Cycle) -> CycleRecord {
    let name = |id: WorkloadId| state.workload_name(id).to_owned();
    CycleRecord {
        decisions: cycle
            .entries
            .iter()
            .map(|it| decision_record(state, workloads, it))
            .collect(),
        out_of_scope: cycle.out_of_scope.iter().map(|id| name(*id)).collect(),
    }
}

fn decision_record(state: &State, workloads: &WorkloadStore, entry: &Entry) -> DecisionRecord {
    let workload = state.workload_name(entry.workload);
    let stored = workloads.entries.get(workload);
    let version = stored.and_then(|it| it.object.metadata.resource_version.clone());
    let (has_flavors, victims) = match &entry.decision {
        Decision::Admit => (true, &[] as &[_]),
        Decision::Preempt(victims) => (true, victims.as_slice()),
        _ => (false, &[] as &[_]),
    };
    let pod_sets = entry.assignment().pod_sets.iter().filter(|_| has_flavors);
    let pod_sets = pod_sets.map(|it| PodSetDecision {
        count: it.count,
        flavors: it
            .flavors
            .iter()
            .map(|it| {
                let resource = state.resource_name(it.resource).to_owned();
                (resource, state.flavor_name(it.flavor).to_owned())
            })
            .collect(),
    });
    let victims = victims.iter().map(|it| VictimRecord {
        workload: state.workload_name(it.workload).to_owned(),
        reason: it.reason.as_str().to_owned(),
    });
    DecisionRecord {
        workload: workload.to_owned(),
        resource_version: version.unwrap_or_default(),
        decision: entry.decision.as_str().to_owned(),
        pod_sets: pod_sets.collect(),
        victims: victims.collect(),
    }
}
