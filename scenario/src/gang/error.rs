//! Errors of scenarios of pods and gangs.

use lockkeeper_cluster_state::ObjectError;

/// Why a scenario is no world.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GangError {
    /// When two objects of a kind have one name.
    #[error("{at}: there is another {kind} {name:?}; give each a name of its own")]
    Duplicate {
        /// Where.
        at: String,
        /// What it is.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// When something is spoken of that is not there.
    #[error("{at}: there is no {kind} {name:?}")]
    Unknown {
        /// Where.
        at: String,
        /// What it is.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// When an amount is below zero.
    #[error("{at}: an amount is zero or more")]
    Negative {
        /// Where.
        at: String,
    },
    /// When an amount, or all of one resource together, is more than a 64-bit number holds.
    #[error("{at}: the amount is too large; all of a resource together must stay below 2^63")]
    TooLarge {
        /// Where.
        at: String,
    },
    /// When a group is preempted by a lower priority than it is scheduled with: two of them could preempt each other
    /// without end.
    #[error(
        "{at}: the preemption priority {preemption} is below the priority {scheduling}; give at least as much"
    )]
    Priority {
        /// Where.
        at: String,
        /// The priority that it is preempted by.
        preemption: i32,
        /// The priority that it is scheduled with.
        scheduling: i32,
    },
    /// When a label selector has an operator that there is not.
    #[error("{at}: {operator:?} is no operator; use In, NotIn, Exists or DoesNotExist")]
    Operator {
        /// Where.
        at: String,
        /// The operator.
        operator: String,
    },
    /// When a taint has an effect that there is not.
    #[error("{at}: {effect:?} is no effect; use NoSchedule, PreferNoSchedule or NoExecute")]
    Effect {
        /// Where.
        at: String,
        /// The effect.
        effect: String,
    },
    /// When two ways of saying one thing contradict each other, or one is missing.
    #[error("{at}: {problem}")]
    Form {
        /// Where.
        at: String,
        /// What to do.
        problem: &'static str,
    },
    /// When the spec of a pod cannot be read.
    #[error("{at}: {error}")]
    Pod {
        /// Where.
        at: String,
        /// What is wrong.
        error: Box<ObjectError>,
    },
}
