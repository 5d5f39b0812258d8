//! Decisions by name, so that two makers of decisions can be compared.

use super::world::Pair;
use lockkeeper_preemption::{Mode, Reason, RequeueReason, RequeuedTo, SkipReason};
use std::collections::{BTreeMap, BTreeSet};

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

/// The active and the parked workloads of a queue.
pub type Places = (Vec<String>, Vec<String>);

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
    /// Which kinds of decisions there are.
    pub fn kinds(&self) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        for entry in &self.entries {
            let decided = format!("{:?}", entry.decided);
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
