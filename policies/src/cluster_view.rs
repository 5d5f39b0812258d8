//! What rules may ask about other objects.

use crate::cohort_trees::{self, Tree};
use crate::object_kind::{IndexedKind, Project};
pub use crate::object_ref::{ObjectName, Referrers};
use lockkeeper_api::foreign::koordinator::ResourceQuantities;
use std::collections::BTreeSet;

/// An answer about another object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// It exists.
    Found(T),
    /// It does not exist.
    Absent,
    /// Nobody knows: no object of that kind was given. A rule passes.
    Unknown,
}

impl<T> Lookup<T> {
    /// What was found, if it was.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// What rules use of a PriorityClass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityClassFacts {
    /// The priority that it stands for.
    pub value: i32,
    /// Whether it is the class of those that name none.
    pub global_default: bool,
    /// Whether its pods may preempt; `None` when it doesn't say.
    pub preemption_policy: Option<PreemptionPolicy>,
}

/// Whether pods of a PriorityClass may preempt others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionPolicy {
    /// They may preempt pods of lower priority.
    PreemptLowerPriority,
    /// They wait.
    Never,
}

impl PreemptionPolicy {
    /// All of them, as they are written.
    pub const NAMES: [&'static str; 2] =
        [Self::PreemptLowerPriority.as_str(), Self::Never.as_str()];

    /// Reads the value of the field.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let mut all = [Self::PreemptLowerPriority, Self::Never].into_iter();
        all.find(|policy| policy.as_str() == value)
    }

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreemptLowerPriority => "PreemptLowerPriority",
            Self::Never => "Never",
        }
    }
}

/// What rules use of a Workload of Kubernetes (`scheduling.k8s.io`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplatesFacts {
    /// The names of its templates.
    pub templates: BTreeSet<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What a pod says about being a victim (Koordinator's preemptible label).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptibleLabel {
    /// It has no such label.
    Missing,
    /// The label is exactly `false`.
    No,
    /// The label has any other value.
    Yes,
}

impl PreemptibleLabel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Missing, Self::No, Self::Yes];

    /// Reads the value of the label.
    #[must_use]
    pub fn parse(value: Option<&str>) -> Self {
        match value {
            None => Self::Missing,
            Some("false") => Self::No,
            Some(_) => Self::Yes,
        }
    }
}

/// What is known of a pod's priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPriority {
    /// Only the pod's metadata are known.
    #[default]
    Unknown,
    /// It names no class, and has no priority yet.
    Unset,
    /// It has this priority.
    Value(i32),
    /// It names this class, and has no priority yet.
    Class(String),
}

/// What the pods of one job should agree on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodPreemptionLabels {
    /// Whether it may be a victim.
    pub preemptible: PreemptibleLabel,
    /// Whether it may trigger preemption.
    pub can_preempt: bool,
    /// Its priority.
    pub priority: PodPriority,
}

/// What rules use of a Koordinator ElasticQuota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaFacts {
    /// The quota that it is below.
    pub parent: String,
    /// Whether quotas may be below it.
    pub is_parent: bool,
    /// The tree that it belongs to; empty if it names none.
    pub tree_id: String,
    /// What is guaranteed.
    pub min: ResourceQuantities,
    /// The most that can be used.
    pub max: ResourceQuantities,
    /// What its tree holds ready for it.
    pub guaranteed: ResourceQuantities,
    /// The namespaces whose pods use it.
    pub namespaces: BTreeSet<String>,
}

/// A quota's name, and what rules use of it.
pub type NamedQuota<'a> = (&'a str, &'a QuotaFacts);

/// The other objects, as far as rules ask for them. Every question is answered at once from what
/// is at hand. A world that adds something to another one names it in [`World::base`], and answers by itself
/// only what it adds.
pub trait ClusterView {
    /// The world that answers what this one does not answer by itself; without one, nobody knows.
    fn fallback(&self) -> Option<&dyn ClusterView> {
        None
    }

    /// The PriorityClass of this name. The two `system-` classes need not be asked for: they are known.
    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts>;

    /// The PriorityClass marked as global default. Of several the one with the lowest value counts,
    /// as in Kubernetes; of those the first by name.
    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)>;

    /// The names of some PriorityClasses, for a message that says what there is. Kubernetes' own
    /// `system-` classes are not meant for everybody and are left out.
    fn priority_class_names(&self, limit: usize) -> Vec<String> {
        self.fallback()
            .map_or_else(Vec::new, |it| it.priority_class_names(limit))
    }

    /// The unfinished Workloads that name this PriorityClass.
    fn priority_class_referrers(&self, name: &str, limit: usize) -> Referrers {
        self.fallback().map_or_else(Referrers::default, |it| {
            it.priority_class_referrers(name, limit)
        })
    }

    /// The lowest priority that a PriorityClass, or a `WorkloadPriorityClass` of Kueue, other than `except`
    /// stands for, and its name.
    fn lowest_class(&self, kind: IndexedKind, except: &str) -> Lookup<(i32, &str)> {
        self.fallback()
            .map_or(Lookup::Unknown, |it| it.lowest_class(kind, except))
    }

    /// Whether there is an object of this name, of a kind that is in no namespace.
    fn exists(&self, kind: IndexedKind, name: &str) -> Lookup<()> {
        self.fallback()
            .map_or(Lookup::Unknown, |it| it.exists(kind, name))
    }

    /// The quota trees of a family, as far as they are known.
    fn tree(&self, family: Project) -> &Tree {
        self.fallback()
            .map_or(&cohort_trees::EMPTY, |it| it.tree(family))
    }

    /// The name of a pod of the job that carries such a label and is not the pod `except`.
    fn job_pod_with_label(
        &self,
        namespace: &str,
        job: &str,
        label: PreemptibleLabel,
        except: &str,
    ) -> Option<String> {
        self.fallback()?
            .job_pod_with_label(namespace, job, label, except)
    }

    /// The name of a pod of the job other than the pod `except`, of which `differs` holds, and what it
    /// says. Pods that say the same are looked at once.
    fn find_job_pod(
        &self,
        namespace: &str,
        job: &str,
        except: &str,
        differs: &dyn Fn(&PodPreemptionLabels) -> bool,
    ) -> Option<(&str, &PodPreemptionLabels)> {
        self.fallback()?
            .find_job_pod(namespace, job, except, differs)
    }

    /// The ElasticQuota of this name. Koordinator knows quotas by their name alone; of several in
    /// different namespaces the first by namespace counts.
    fn quota(&self, name: &str) -> Lookup<&QuotaFacts> {
        self.fallback().map_or(Lookup::Unknown, |it| it.quota(name))
    }

    /// A namespace other than this one that has an ElasticQuota of this name.
    fn quota_in_other_namespace(&self, name: &str, namespace: &str) -> Option<&str> {
        self.fallback()?.quota_in_other_namespace(name, namespace)
    }

    /// The ElasticQuotas below this one, by name; none if nobody knows.
    fn quota_children(&self, name: &str) -> Vec<NamedQuota<'_>> {
        self.fallback()
            .map_or_else(Vec::new, |it| it.quota_children(name))
    }

    /// An ElasticQuota other than `except` that is for the pods of this namespace by its annotation.
    fn quota_bound_to(&self, namespace: &str, except: &str) -> Option<&str> {
        self.fallback()?.quota_bound_to(namespace, except)
    }

    /// The ElasticQuota of a namespace's pods that name none: the one in it that is named like it, else
    /// the first that is for its pods by its annotation.
    fn quota_of_namespace(&self, namespace: &str) -> Option<&str> {
        self.fallback()?.quota_of_namespace(namespace)
    }

    /// The pods that name this ElasticQuota.
    fn quota_pods(&self, name: &str, limit: usize) -> Referrers {
        self.fallback()
            .map_or_else(Referrers::default, |it| it.quota_pods(name, limit))
    }

    /// The first pod of this namespace.
    fn pod_in(&self, namespace: &str) -> Option<&str> {
        self.fallback()?.pod_in(namespace)
    }

    /// The templates of the Workload of Kubernetes of this name.
    fn templates(&self, namespace: &str, workload: &str) -> Lookup<TemplatesFacts> {
        self.fallback()
            .map_or(Lookup::Unknown, |it| it.templates(namespace, workload))
    }
}
