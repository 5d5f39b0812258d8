//! The changes of objects.

use lockkeeper_explain::ReadKueueObject;

/// A kind that decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// ClusterQueues.
    ClusterQueue,
    /// Cohorts.
    Cohort,
    /// `ResourceFlavor`s.
    ResourceFlavor,
    /// LocalQueues.
    LocalQueue,
    /// `WorkloadPriorityClass`es.
    PriorityClass,
    /// Namespaces.
    Namespace,
    /// `LimitRange`s.
    LimitRange,
    /// `RuntimeClass`es.
    RuntimeClass,
    /// Workloads.
    Workload,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub enum Change {
    /// It was added or changed.
    Applied(ReadKueueObject),
    /// It was deleted.
    Deleted {
        /// Its kind.
        kind: ObjectKind,
        /// Its namespace; empty without one.
        namespace: String,
        /// Its name.
        name: String,
    },
}
