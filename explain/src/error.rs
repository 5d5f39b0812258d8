//! Errors of objects and of the selection of a workload.

/// An object that is not part of the world, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name}: {reason}")]
pub struct UnreadableObject {
    /// The kind, or `?`.
    pub kind: String,
    /// The name, with the namespace if it has one.
    pub name: String,
    /// The problem.
    pub reason: String,
}

/// Why no workload is selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// The argument is neither a name nor `KIND/NAME`.
    #[error(
        "{0:?} is not a workload; give the name of a Workload, or KIND/NAME of a job, such as job/train"
    )]
    Invalid(String),
    /// There is no such workload.
    #[error("there is no Workload {name:?}{place}{near}")]
    NoWorkload {
        /// The name.
        name: String,
        /// ` in namespace X`, or empty.
        place: String,
        /// A hint with the nearest name, or empty.
        near: String,
    },
    /// The job has no workload.
    #[error("{job} has no Workload: {reason}")]
    NoWorkloadOfJob {
        /// The job as `kind/name`.
        job: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// The name occurs in several namespaces.
    #[error("{name:?} is in several namespaces ({}); choose one with --namespace", namespaces.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// The namespaces, sorted.
        namespaces: Vec<String>,
    },
}
