//! What a workload wants, and what it gets.

use crate::amount::Amount;
use crate::ids::{FlavorId, FlavorResource, ResourceId};
use crate::trace::Possibility;

/// What a workload wants: one pod set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSet {
    /// Its name.
    pub name: Box<str>,
    /// How many pods.
    pub count: i64,
    /// With how many it makes do; `None` is all.
    pub count_min: Option<i64>,
    /// What all its pods ask for together.
    pub requests: Box<[(ResourceId, Amount)]>,
    /// Flavors that its pods cannot run on: a taint, the affinity.
    pub ineligible: Box<[FlavorId]>,
    /// Tells apart pod sets that differ in what is not here, such as their affinity.
    pub template_hash: u64,
}

impl PodSet {
    /// What so many of its pods ask for, where all ask for `total` together.
    #[must_use]
    pub fn scaled_request(&self, total: Amount, count: i64) -> Amount {
        if count == self.count {
            return total;
        }
        let each = total.get().checked_div(self.count).unwrap_or_default();
        Amount::new(each.saturating_mul(count))
    }
}

/// How a workload can be had, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Not at all.
    NoFit,
    /// If others go.
    Preempt,
    /// As it is.
    Fit,
}

impl From<Possibility> for Mode {
    fn from(possibility: Possibility) -> Self {
        match possibility {
            Possibility::NoFit => Self::NoFit,
            Possibility::NoCandidates | Possibility::Preempt | Possibility::Reclaim => {
                Self::Preempt
            }
            Possibility::Fit => Self::Fit,
        }
    }
}

/// The flavor of one resource of a pod set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlavorAssignment {
    /// The resource.
    pub resource: ResourceId,
    /// The flavor.
    pub flavor: FlavorId,
    /// What it takes.
    pub mode: Mode,
    /// How far up the tree the quota comes from: 0 is the queue's own.
    pub borrowing_level: u32,
    /// The position of the last flavor looked at; `None` if it was the last there is.
    pub tried_flavor_index: Option<usize>,
}

/// The flavors of a pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSetAssignment {
    /// The position of the pod set.
    pub pod_set: usize,
    /// For how many pods.
    pub count: i64,
    /// What it takes.
    pub mode: Mode,
    /// By resource; empty if it does not fit.
    pub flavors: Vec<FlavorAssignment>,
}

/// Flavors for a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// What it takes: the worst of the pod sets.
    pub mode: Mode,
    /// The highest borrowing level.
    pub borrowing_level: u32,
    /// By pod set; those after one that does not fit are missing.
    pub pod_sets: Vec<PodSetAssignment>,
    /// What is used of each flavor and resource. Sorted.
    pub usage: Vec<(FlavorResource, Amount)>,
}

impl Assignment {
    /// The flavors and resources that need preemption. Sorted.
    #[must_use]
    pub fn needs(&self) -> Vec<FlavorResource> {
        let flavors = self.pod_sets.iter().flat_map(|pod_set| &pod_set.flavors);
        let mut needs: Vec<_> = flavors
            .filter(|it| it.mode == Mode::Preempt)
            .map(|it| FlavorResource {
                flavor: it.flavor,
                resource: it.resource,
            })
            .collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// Where the next try would go on, by pod set and resource.
    pub(crate) fn last_tried_flavors(&self) -> Vec<(usize, ResourceId, usize)> {
        let mut tried = Vec::new();
        for pod_set in &self.pod_sets {
            let at = pod_set.pod_set;
            let stopped = pod_set.flavors.iter();
            tried.extend(stopped.filter_map(|it| Some((at, it.resource, it.tried_flavor_index?))));
        }
        tried
    }
}
