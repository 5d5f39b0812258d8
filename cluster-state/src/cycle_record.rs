//! The decisions of a cycle, with names in place of ids.

use crate::workload_store::WorkloadStore;
use lockkeeper_preemption::{Cycle, Decision, Entry, State, WorkloadId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The decision on a workload that the namespace selector of its ClusterQueue does not match.
pub const OUT_OF_SCOPE: &str = "OutOfScope";

/// The decisions of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleRecord {
    /// In the order in which they were made; workloads out of scope last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionRecord>,
}

/// The decision on one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRecord {
    /// `namespace/name`.
    pub workload: Arc<str>,
    /// The version of its object. Empty in the events of a running state: the event of the object before has it, and a cycle
    /// that looked it up would take longer.
    pub resource_version: String,
    /// One of [`Decision::NAMES`], or [`OUT_OF_SCOPE`].
    pub decision: Cow<'static, str>,
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

impl fmt::Display for PodSetDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.count == 1 { "" } else { "s" };
        let flavors = self.flavors.iter();
        let flavors: Vec<String> = flavors
            .map(|(resource, flavor)| format!("{resource} of flavor {flavor}"))
            .collect();
        write!(f, "{} pod{plural}: {}", self.count, flavors.join(", "))
    }
}

/// A preempted workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VictimRecord {
    /// `namespace/name`.
    pub workload: Arc<str>,
    /// As in the condition `Preempted`.
    pub reason: Cow<'static, str>,
}

/// The record of a cycle that has just run, without the versions of objects.
pub(crate) fn cycle_record(state: &State, cycle: &Cycle) -> CycleRecord {
    let decisions = cycle.entries.iter().map(|it| decision_record(state, it));
    let out_of_scope = cycle.out_of_scope.iter();
    let out_of_scope = out_of_scope.map(|id| record(state, *id, OUT_OF_SCOPE));
    CycleRecord {
        decisions: decisions.chain(out_of_scope).collect(),
    }
}

impl CycleRecord {
    /// Sets the versions of the objects.
    pub(crate) fn set_versions(&mut self, workloads: &WorkloadStore) {
        for decision in &mut self.decisions {
            let stored = workloads.entries.get(&*decision.workload);
            let version = stored.and_then(|it| it.object.metadata.resource_version.clone());
            decision.resource_version = version.unwrap_or_default();
        }
    }
}

/// A decision without flavors and victims.
fn record(state: &State, id: WorkloadId, decision: &'static str) -> DecisionRecord {
    DecisionRecord {
        workload: state.workload_view(id).shared_name(),
        decision: Cow::Borrowed(decision),
        ..DecisionRecord::default()
    }
}

fn decision_record(state: &State, entry: &Entry) -> DecisionRecord {
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
        workload: state.workload_view(it.workload).shared_name(),
        reason: Cow::Borrowed(it.reason.as_str()),
    });
    DecisionRecord {
        pod_sets: pod_sets.collect(),
        victims: victims.collect(),
        ..record(state, entry.workload, entry.decision.as_str())
    }
}
