//! Decisions by name, so that two makers of decisions can be compared.

use super::world::Pair;
use lockkeeper_preemption::{Mode, Reason, RequeueReason, RequeuedTo, SkipReason};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub struct FlavorPlan {
    pub resource: usize,
    pub flavor: usize,
    pub mode: Mode,
    pub level: u32,
    pub tried: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PodPlan {
    pub count: i64,
    pub mode: Mode,
    pub flavors: Vec<FlavorPlan>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub mode: Mode,
    pub level: u32,
    pub pod_sets: Vec<PodPlan>,
    /// Without what is nothing.
    pub usage: BTreeMap<Pair, i64>,
}

/// A victim and why it is one.
pub type Gone = (String, Reason);

#[derive(Clone, Debug, PartialEq)]
pub struct Nominated {
    pub plan: Plan,
    pub victims: Vec<Gone>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Decided {
    Admit,
    Preempt(Vec<Gone>),
    Skip(SkipReason),
    DeferredFit,
    NoCandidates,
    NoFit,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub workload: String,
    pub nominated: Nominated,
    pub recomputed: Option<Plan>,
    pub decided: Decided,
    pub reserved: BTreeMap<Pair, i64>,
    pub requeued: Option<(RequeueReason, RequeuedTo)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cycle {
    /// The heads, and whether their queues wait for them.
    pub heads: Vec<(String, bool)>,
    pub out_of_scope: Vec<String>,
    pub entries: Vec<Entry>,
}

impl Cycle {
    /// All victims of the cycle, by name.
    pub fn victims(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .entries
            .iter()
            .filter_map(|it| match &it.decided {
                Decided::Preempt(victims) => Some(victims),
                _ => None,
            })
            .flatten()
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names
    }
}
