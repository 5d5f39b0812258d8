//! The input of the state: options, queues, cohorts and workloads.

use crate::amount::Amount;
use crate::assignment::{Assignment, PodSet};
use crate::backfill::Backfill;
use crate::damping::Damping;
use crate::ids::FlavorResource;
use crate::job::{ElasticDefaults, PreemptionLabels};
use crate::policy::{
    Algorithm, Compatibility, FlavorFungibility, Preemption, PreemptionLimits, QueueingStrategy,
};
use crate::quota::{Quota, ResourceGroup};

/// Options of all queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The algorithm that selects victims.
    pub algorithm: Algorithm,
    /// Whether to reproduce Kueue's known bugs.
    pub compatibility: Compatibility,
    /// Which entries may borrow in a cycle.
    pub borrowing_gate: BorrowingGate,
    /// Never admit a workload with fewer pods than it requests.
    pub disable_partial_admission: bool,
    /// Skip an entry with victims that an earlier entry preempts, instead of nominating it again.
    pub disable_recomputation: bool,
    /// Whether freed quota is held for its preemptor, and preemption loops are cut.
    pub damping: Damping,
    /// The most workloads that are preempted in one cycle; `None` is no limit.
    pub victims_per_cycle_max: Option<u32>,
    /// The limits of queues that do not set them.
    pub preemption_limits: PreemptionLimits,
    /// Bugs of old Kueue releases to reproduce.
    pub kueue_bugs: KueueBugs,
}

/// Bugs of old Kueue releases that cause preemption loops, for the simulation of a cluster with such a
/// release. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KueueBugs {
    /// Among entries with the same borrowing level the older one comes first, whatever its priority
    /// (`PrioritySortingWithinCohort=false`, issue 2821).
    pub ignores_priority_in_cycle: bool,
    /// `borrowWithinCohort` applies under fair sharing too: a candidate of lower priority, not above the
    /// threshold, is preempted whatever the shares are (issue 3779).
    pub borrows_under_fair_sharing: bool,
    /// A queue has no sticky preemptor: other workloads may use the quota of its victims (issue 6947).
    pub forgets_preemptors: bool,
}

/// Which entries may borrow in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BorrowingGate {
    /// Every entry that finds quota, as in Kueue today.
    #[default]
    Quota,
    /// In a cohort none after an entry that does not borrow (KEP-83).
    Cohort,
}

/// A ClusterQueue.
#[derive(Clone, Debug)]
pub struct QueueSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its cohort.
    pub cohort: Option<&'a str>,
    /// Its quota by resource group.
    pub groups: Vec<ResourceGroup>,
    /// Its preemption policy.
    pub preemption: Preemption,
    /// Its flavor fungibility.
    pub fungibility: FlavorFungibility,
    /// Its queueing strategy.
    pub strategy: QueueingStrategy,
    /// Its backfill. Without effect unless the strategy is `StrictFIFO`, and on elastic queues.
    pub backfill: Option<Backfill>,
    /// Its weight in fair sharing; 1 is usual.
    pub weight: f64,
    /// The defaults of an elastic queue; `None` if it is not elastic. The nominal quota is its min, and
    /// nominal quota plus borrowing limit its max.
    pub elastic: Option<ElasticDefaults>,
    /// False if it is stopped or a flavor is missing: then it admits nothing.
    pub is_active: bool,
}

/// A cohort.
#[derive(Clone, Debug)]
pub struct CohortSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its parent cohort.
    pub parent: Option<&'a str>,
    /// Its own quota.
    pub quotas: Vec<(FlavorResource, Quota)>,
    /// Its weight in fair sharing; 1 is usual.
    pub weight: f64,
}

/// A workload.
#[derive(Clone, Debug)]
pub struct WorkloadSpec<'a> {
    /// Its unique name, with the namespace where names may repeat.
    pub name: &'a str,
    /// Its uid. The last tie-breaker, compared as bytes.
    pub uid: &'a str,
    /// Its ClusterQueue.
    pub queue: &'a str,
    /// Its scheduling priority: in the queue and as a preemptor.
    pub priority: i32,
    /// Its preemption priority: as a candidate for preemption. `None`, or one below the scheduling priority, counts as
    /// the scheduling priority.
    pub preemption_priority: Option<i32>,
    /// Its time in queue order: its creation, or an eviction that replaces it. Any unit that all workloads
    /// share.
    pub order_time: i64,
    /// Since when it waits for quota, in seconds: its creation or its last eviction.
    pub waiting_since_s: i64,
    /// Its pod sets.
    pub pod_sets: Vec<PodSet>,
    /// Whether the queue's namespace selector matches.
    pub is_in_scope: bool,
    /// The preemption policy and labels of its pods. Only elastic queues use the labels.
    pub preemption_labels: PreemptionLabels,
}

/// The reserved quota of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The amounts; each flavor and resource at most once.
    pub usage: Vec<(FlavorResource, Amount)>,
    /// When it was reserved, in seconds.
    pub reserved_at_s: i64,
    /// Whether it is being evicted.
    pub is_evicted: bool,
}

impl Reservation {
    /// Creates the reservation that an assignment makes when it is admitted.
    #[must_use]
    pub fn from_assignment(assignment: &Assignment, reserved_at_s: i64) -> Self {
        Self {
            usage: assignment.usage.clone(),
            reserved_at_s,
            is_evicted: false,
        }
    }
}
