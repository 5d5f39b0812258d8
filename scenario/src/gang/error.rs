//! Errors of scenarios of pods and pod groups.

use lockkeeper_cluster_state::ObjectError;

/// Why a scenario cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GangError {
    /// Two objects of a kind have the same name.
    #[error("{at}: duplicate {kind} name {name:?}; use unique names")]
    Duplicate {
        /// The field path.
        at: String,
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A reference names no existing object.
    #[error("{at}: {kind} {name:?} does not exist")]
    Unknown {
        /// The field path.
        at: String,
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// An amount is negative.
    #[error("{at}: an amount must be zero or more")]
    Negative {
        /// The field path.
        at: String,
    },
    /// An amount, or the sum of a resource over all objects, does not fit into 64 bits.
    #[error("{at}: the amount is too large; all of a resource together must stay below 2^63")]
    TooLarge {
        /// The field path.
        at: String,
    },
    /// The preemption priority of a group is below its scheduling priority: two such groups could preempt each other in
    /// a loop.
    #[error(
        "{at}: the preemption priority {preemption} is below the priority {scheduling}; set it to at least that"
    )]
    Priority {
        /// The field path.
        at: String,
        /// The preemption priority.
        preemption: i32,
        /// The scheduling priority.
        scheduling: i32,
    },
    /// A label selector has an unknown operator.
    #[error("{at}: unknown operator {operator:?}; use In, NotIn, Exists or DoesNotExist")]
    Operator {
        /// The field path.
        at: String,
        /// The operator.
        operator: String,
    },
    /// A taint has an unknown effect.
    #[error("{at}: unknown effect {effect:?}; use NoSchedule, PreferNoSchedule or NoExecute")]
    Effect {
        /// The field path.
        at: String,
        /// The effect.
        effect: String,
    },
    /// Fields are missing, or contradict each other.
    #[error("{at}: {problem}")]
    Form {
        /// The field path.
        at: String,
        /// The problem and its remedy.
        problem: &'static str,
    },
    /// The spec of a pod cannot be decoded.
    #[error("{at}: {error}")]
    Pod {
        /// The field path.
        at: String,
        /// The reason.
        error: Box<ObjectError>,
    },
}
