//! Decisions by name, so that those of the `State` and of the reference can be compared.

use super::cluster_model::Pair;
use lockkeeper_preemption::{
    Mode, PreemptionReason, RequeueDestination, RequeueReason, SkipReason,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq)]
pub struct FlavorPlan {
    pub resource: usize,
    pub flavor: usize,
    pub mode: Mode,
    pub level: u32,
    pub tried_flavor_index: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PodSetPlan {
    pub count: i64,
    pub mode: Mode,
    pub flavors: Vec<FlavorPlan>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub mode: Mode,
    pub level: u32,
    pub pod_sets: Vec<PodSetPlan>,
    /// Without amounts of 0.
    pub usage: BTreeMap<Pair, i64>,
}

/// The active and the inadmissible workloads of a queue.
pub type QueueContents = (Vec<String>, Vec<String>);

/// A victim and the reason of its preemption.
pub type NamedVictim = (String, PreemptionReason);

#[derive(Clone, Debug, PartialEq)]
pub struct NamedNomination {
    pub plan: Plan,
    pub victims: Vec<NamedVictim>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NamedDecision {
    Admit,
    Preempt(Vec<NamedVictim>),
    Skip(SkipReason),
    DeferredFit,
    NoCandidates,
    NoFit,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NamedEntry {
    pub workload: String,
    pub nominated: NamedNomination,
    pub recomputed: Option<Plan>,
    pub decision: NamedDecision,
    pub reserved: BTreeMap<Pair, i64>,
    pub requeued: Option<(RequeueReason, RequeueDestination)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedCycle {
    /// The heads, and whether their queues wait for them.
    pub heads: Vec<(String, bool)>,
    pub out_of_scope: Vec<String>,
    pub entries: Vec<NamedEntry>,
}

impl NamedCycle {
    /// The kinds of decisions in the cycle.
    pub fn kinds(&self) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        for entry in &self.entries {
            let decided = format!("{:?}", entry.decision);
            let name = decided.split("([").next().unwrap_or_default();
            kinds.insert(name.to_owned());
            if entry.recomputed.is_some() {
                kinds.insert("recomputed".to_owned());
            }
            for (_, reason) in &entry.nominated.victims {
                kinds.insert(reason.as_str().to_owned());
            }
            if let Some((reason, to)) = entry.requeued {
                kinds.insert(format!("{reason:?} {to:?}"));
            }
        }
        if self.heads.iter().any(|(_, is_sticky)| *is_sticky) {
            kinds.insert("sticky".to_owned());
        }
        if !self.out_of_scope.is_empty() {
            kinds.insert("out of scope".to_owned());
        }
        kinds
    }

    /// All victims of the cycle, by name.
    pub fn victims(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.decision {
                NamedDecision::Preempt(victims) => Some(victims),
                _ => None,
            })
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names
    }
}
