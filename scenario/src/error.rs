//! Errors of scenario files.

/// The most pod sets of a workload; more do not fit into an object of an API server.
pub(crate) const POD_SETS_MAX: usize = 4_096;

/// Why a scenario cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Two objects of a kind have the same name.
    #[error("{at}: duplicate {kind} name {name:?}; use unique names")]
    Duplicate {
        /// The field path.
        at: String,
        /// `ClusterQueue`, `Cohort` or `workload`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A quota, a limit or a request is negative.
    #[error("{at}: {amount} is negative; an amount must be zero or more")]
    Negative {
        /// The field path.
        at: String,
        /// The amount.
        amount: i64,
    },
    /// An amount, or the sum of a resource over all objects, does not fit into 64 bits.
    #[error("{at}: the amount is too large; all of a resource together must stay below 2^63")]
    TooLarge {
        /// The field path.
        at: String,
    },
    /// A cohort is its own ancestor.
    #[error("{at}: the cohort {name:?} is its own ancestor; remove one parent of the cycle")]
    CohortCycle {
        /// The field path.
        at: String,
        /// A cohort on the cycle.
        name: String,
    },
    /// A count or minimum count is out of range.
    #[error("{at}: invalid count {count}; {accepted}")]
    Count {
        /// The field path.
        at: String,
        /// The count.
        count: i64,
        /// The accepted values.
        accepted: &'static str,
    },
    /// A preemption priority is below the scheduling priority.
    #[error("{at}: {given} is below the priority {priority}; use {priority} or more")]
    PreemptionPriority {
        /// The field path.
        at: String,
        /// The preemption priority.
        given: i32,
        /// The scheduling priority.
        priority: i32,
    },
    /// A workload has too many pod sets.
    #[error("{at}: {count} pod sets; the limit is {POD_SETS_MAX}")]
    TooManyPodSets {
        /// The field path.
        at: String,
        /// The number of pod sets.
        count: usize,
    },
    /// An admitted workload has no flavor for a requested resource.
    #[error("{at}: the workload holds quota, but no flavor of {resource:?} is given")]
    NoFlavor {
        /// The field path.
        at: String,
        /// The resource.
        resource: String,
    },
    /// A weight is negative or not a number.
    #[error("{at}: a weight must be zero or more")]
    Weight {
        /// The field path.
        at: String,
    },
}
