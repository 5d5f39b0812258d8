//! The indexed kinds of objects, and the projects they belong to.

/// The project that a kind belongs to. Objects of one project never refer to objects of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Project {
    /// lockkeeper's (`lockkeeper.dev`).
    Lockkeeper,
    /// Kueue's (`kueue.x-k8s.io`).
    Kueue,
}

/// The kinds of objects in a [`crate::index::Index`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexedKind {
    /// Kubernetes' PriorityClass.
    PriorityClass,
    /// lockkeeper's Workload.
    Workload,
    /// A pod.
    Pod,
    /// Koordinator's ElasticQuota.
    ElasticQuota,
    /// A Workload of Kubernetes (`scheduling.k8s.io`).
    Templates,
    /// A ClusterQueue.
    ClusterQueue(Project),
    /// A Cohort.
    Cohort(Project),
    /// A ResourceFlavor.
    ResourceFlavor(Project),
    /// A LocalQueue.
    LocalQueue(Project),
    /// Kueue's `WorkloadPriorityClass`.
    WorkloadPriorityClass,
    /// lockkeeper's `JobKind`.
    JobKind,
}

impl IndexedKind {
    /// Every kind.
    pub const ALL: [Self; 15] = [
        Self::PriorityClass,
        Self::Workload,
        Self::Pod,
        Self::ElasticQuota,
        Self::Templates,
        Self::ClusterQueue(Project::Lockkeeper),
        Self::Cohort(Project::Lockkeeper),
        Self::ResourceFlavor(Project::Lockkeeper),
        Self::LocalQueue(Project::Lockkeeper),
        Self::ClusterQueue(Project::Kueue),
        Self::Cohort(Project::Kueue),
        Self::ResourceFlavor(Project::Kueue),
        Self::LocalQueue(Project::Kueue),
        Self::WorkloadPriorityClass,
        Self::JobKind,
    ];

    /// The project with the quota trees that objects of this kind belong to; `None` for kinds in no tree.
    pub(crate) fn project(self) -> Option<Project> {
        match self {
            Self::ClusterQueue(project) | Self::Cohort(project) | Self::ResourceFlavor(project) => {
                Some(project)
            }
            _ => None,
        }
    }

    /// The `kind` field of an object.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PriorityClass => "PriorityClass",
            Self::Workload | Self::Templates => "Workload",
            Self::Pod => "Pod",
            Self::ElasticQuota => "ElasticQuota",
            Self::ClusterQueue(_) => "ClusterQueue",
            Self::Cohort(_) => "Cohort",
            Self::ResourceFlavor(_) => "ResourceFlavor",
            Self::LocalQueue(_) => "LocalQueue",
            Self::WorkloadPriorityClass => "WorkloadPriorityClass",
            Self::JobKind => "JobKind",
        }
    }
}
