//! Errors of scenario files.

/// The most pod sets of a workload; an API server's object holds no more.
pub(crate) const POD_SETS_MAX: usize = 4_096;

/// Why a scenario is no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// When two objects of a kind have one name.
    #[error("{at}: there is another {kind} {name:?}; give each a name of its own")]
    Duplicate {
        /// Where.
        at: String,
        /// `ClusterQueue`, `Cohort` or `workload`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// When a quota, a limit or a request is below zero.
    #[error("{at}: {amount} is negative; an amount is zero or more")]
    Negative {
        /// Where.
        at: String,
        /// The amount.
        amount: i64,
    },
    /// When an amount, or the sum of all of one resource, is more than a 64-bit number holds.
    #[error("{at}: the amount is too large; all of a resource together must stay below 2^63")]
    TooLarge {
        /// Where.
        at: String,
    },
    /// When cohorts are their own ancestors.
    #[error("{at}: the cohort {name:?} is its own ancestor; take one parent on the circle away")]
    CohortCycle {
        /// Where.
        at: String,
        /// One on the circle.
        name: String,
    },
    /// When a pod set has no pods, or wants at least more than it has.
    #[error("{at}: {count} makes no sense here; {accepted}")]
    Count {
        /// Where.
        at: String,
        /// The count.
        count: i64,
        /// What would be accepted.
        accepted: &'static str,
    },
    /// When a workload has more pod sets than any object holds.
    #[error("{at}: {count} pod sets; at most {POD_SETS_MAX} are possible")]
    TooManyPodSets {
        /// Where.
        at: String,
        /// How many.
        count: usize,
    },
    /// When a workload that holds quota has no flavor for what it asks for.
    #[error("{at}: the workload holds quota, but no flavor of {resource:?} is given")]
    NoFlavor {
        /// Where.
        at: String,
        /// The resource.
        resource: String,
    },
    /// When a weight is negative or no number.
    #[error("{at}: a weight is zero or more")]
    Weight {
        /// Where.
        at: String,
    },
}
