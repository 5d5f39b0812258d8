//! What the state is told: queues, cohorts, workloads, and what holds for all of them.

use crate::amount::Amount;
use crate::assignment::PodSet;
use crate::damping::Damping;
use crate::ids::FlavorResource;
use crate::job::{ElasticDefaults, PreemptionLabels};
use crate::policy::{Algorithm, Compatibility, FlavorFungibility, Preemption, QueueingStrategy};
use crate::quota::{Quota, ResourceGroup};

/// What holds for all queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How victims are chosen.
    pub algorithm: Algorithm,
    /// Where Kueue is wrong, whether to be like it.
    pub compatibility: Compatibility,
    /// Who may borrow in a cycle.
    pub borrowing_gate: BorrowingGate,
    /// Whether a workload is never admitted with fewer pods than it asks for.
    pub disable_partial_admission: bool,
    /// Whether a workload whose victims another has taken waits, and gets no other victims.
    pub disable_recomputation: bool,
    /// Whether quota that a preemption frees is held for its preemptor, and circles are cut.
    pub damping: Damping,
    /// How many workloads may be told to go in one cycle; `None` is no limit.
    pub victims_per_cycle_max: Option<u32>,
    /// What former versions of Kueue did.
    pub kueue_bugs: KueueBugs,
}

/// Mistakes of former versions of Kueue that let preemption go in circles, for who asks what a cluster with such
/// a version does. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KueueBugs {
    /// Of entries that borrow from equally far up the earlier goes first, whatever its priority
    /// (`PrioritySortingWithinCohort=false`, issue 2821).
    pub ignores_priority_in_cycle: bool,
    /// `borrowWithinCohort` counts under fair sharing too: whoever is of a lower priority, and not above the
    /// threshold, is taken without a look at shares (issue 3779).
    pub borrows_under_fair_sharing: bool,
    /// A queue does not wait for the workload whose victims are on their way (issue 6947).
    pub forgets_preemptors: bool,
}

/// Who may borrow in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BorrowingGate {
    /// Whoever finds quota, as Kueue does today.
    #[default]
    Quota,
    /// In a cohort nobody, after an entry that does not borrow (KEP-83).
    Cohort,
}

/// A ClusterQueue.
#[derive(Clone, Debug)]
pub struct QueueSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its cohort.
    pub cohort: Option<&'a str>,
    /// What it has quota of.
    pub groups: Vec<ResourceGroup>,
    /// Whom it may preempt.
    pub preemption: Preemption,
    /// How it chooses flavors.
    pub fungibility: FlavorFungibility,
    /// What becomes of a head that does not fit.
    pub strategy: QueueingStrategy,
    /// Its weight in fair sharing; 1 is usual.
    pub weight: f64,
    /// The switches of an elastic quota, if it is one: then nominal quota is its min, and nominal quota and
    /// borrowing limit are its max.
    pub elastic: Option<ElasticDefaults>,
    /// False if it admits nothing: it is stopped, or a flavor is missing.
    pub is_active: bool,
}

/// A cohort.
#[derive(Clone, Debug)]
pub struct CohortSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// The cohort that it is in.
    pub parent: Option<&'a str>,
    /// Quota of its own.
    pub quotas: Vec<(FlavorResource, Quota)>,
    /// Its weight in fair sharing; 1 is usual.
    pub weight: f64,
}

/// A workload.
#[derive(Clone, Debug)]
pub struct WorkloadSpec<'a> {
    /// Its name, with the namespace where that is needed to tell it from others.
    pub name: &'a str,
    /// Its uid, compared as bytes where all else is equal.
    pub uid: &'a str,
    /// Its ClusterQueue.
    pub queue: &'a str,
    /// Its priority.
    pub priority: i32,
    /// Its time in queue order: the creation, or an eviction that counts instead. It is only compared with
    /// that of other workloads, so any unit will do that all of them use.
    pub order_time: i64,
    /// What it wants.
    pub pod_sets: Vec<PodSet>,
    /// Whether the queue's namespace selector takes it.
    pub is_in_scope: bool,
    /// What its pods say about preemption. Only an elastic queue listens.
    pub preemption_labels: PreemptionLabels,
}

/// Quota that a workload holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// What it uses. No flavor and resource twice.
    pub usage: Vec<(FlavorResource, Amount)>,
    /// When it was reserved, in seconds.
    pub reserved_at_s: i64,
    /// Whether it is being evicted already.
    pub is_evicted: bool,
}
