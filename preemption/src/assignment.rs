//! Requests of a workload, and the flavors assigned to it.

use crate::amount::Amount;
use crate::ids::{FlavorId, FlavorResource, ResourceId};
use crate::trace::Possibility;

/// One pod set of a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSet {
    /// Its name.
    pub name: Box<str>,
    /// The number of pods.
    pub count: i64,
    /// The least number of pods that it accepts; `None` is all.
    pub count_min: Option<i64>,
    /// The requests of all its pods together.
    pub requests: Box<[(ResourceId, Amount)]>,
    /// Flavors excluded by taints or node affinity.
    pub ineligible: Box<[FlavorId]>,
    /// Distinguishes pod sets with different templates that are equal in all other fields, such as their
    /// affinity.
    pub template_hash: u64,
}

impl PodSet {
    /// Returns the requests of `count` of its pods, if all of them request `total`.
    #[must_use]
    pub fn scaled_request(&self, total: Amount, count: i64) -> Amount {
        if count == self.count {
            return total;
        }
        let each = total.get().checked_div(self.count).unwrap_or_default();
        Amount::new(each.saturating_mul(count))
    }
}

/// The mode of an assignment, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The request does not fit, with or without preemption.
    NoFit,
    /// The request fits after preemption.
    Preempt,
    /// The request fits on free quota.
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
    /// The mode.
    pub mode: Mode,
    /// The height of the node that lends the quota; 0 is the queue itself.
    pub borrowing_level: u32,
    /// The position of the last flavor tried; `None` if none is left.
    pub tried_flavor_index: Option<usize>,
}

/// The flavors of a pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSetAssignment {
    /// The position of the pod set.
    pub pod_set: usize,
    /// The number of pods.
    pub count: i64,
    /// The mode.
    pub mode: Mode,
    /// By resource; empty if it does not fit.
    pub flavors: Vec<FlavorAssignment>,
}

/// The flavors of all pod sets of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The worst mode of the pod sets.
    pub mode: Mode,
    /// The highest borrowing level.
    pub borrowing_level: u32,
    /// By pod set; those after one that does not fit are missing.
    pub pod_sets: Vec<PodSetAssignment>,
    /// The usage of each flavor and resource. Sorted.
    pub usage: Vec<(FlavorResource, Amount)>,
}

impl Assignment {
    /// Returns the flavors and resources that need preemption. Sorted.
    #[must_use]
    pub fn needs(&self) -> Vec<FlavorResource> {
        let flavors = self.pod_sets.iter().flat_map(|pod_set| &pod_set.flavors);
        let mut needs: Vec<_> = flavors
            .filter(|it| it.mode == Mode::Preempt)
            .map(|flavor| FlavorResource {
                flavor: flavor.flavor,
                resource: flavor.resource,
            })
            .collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    /// Returns the last flavor tried, by pod set and resource: the next search continues behind it.
    pub(crate) fn last_tried_flavors(&self) -> Vec<(usize, ResourceId, usize)> {
        let mut tried_flavors = Vec::new();
        for pod_set in &self.pod_sets {
            let at = pod_set.pod_set;
            let stopped = pod_set.flavors.iter();
            tried_flavors
                .extend(stopped.filter_map(|it| Some((at, it.resource, it.tried_flavor_index?))));
        }
        tried_flavors
    }
}
