//! The interface through which rules look up other objects.

use crate::cohort_trees::{self, LocalQueueFacts, Tree};
use crate::object_kind::{IndexedKind, Project};
pub use crate::object_ref::{ObjectName, Referrers};
use lockkeeper_api::foreign::koordinator::ResourceQuantities;
use serde_json::Value;
use std::collections::BTreeSet;

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    /// The object exists.
    Found(T),
    /// The object does not exist.
    Absent,
    /// Unknown: objects of that kind are not available. Rules have no finding.
    Unknown,
}

impl<T> Lookup<T> {
    /// The value, if found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// The facts of a PriorityClass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityClassFacts {
    /// The priority.
    pub value: i32,
    /// Whether it applies to pods without a class.
    pub global_default: bool,
    /// Whether its pods may preempt; `None` if unset.
    pub preemption_policy: Option<PreemptionPolicy>,
}

/// Whether pods of a PriorityClass may preempt others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionPolicy {
    /// Pods may preempt pods of lower priority.
    PreemptLowerPriority,
    /// Pods wait for capacity.
    Never,
}

impl PreemptionPolicy {
    /// The spellings of all values.
    pub const NAMES: [&'static str; 2] =
        [Self::PreemptLowerPriority.as_str(), Self::Never.as_str()];

    /// Parses the value of the field.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let mut all = [Self::PreemptLowerPriority, Self::Never].into_iter();
        all.find(|policy| policy.as_str() == value)
    }

    /// The spelling in objects.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreemptLowerPriority => "PreemptLowerPriority",
            Self::Never => "Never",
        }
    }
}

/// The facts of a Workload of Kubernetes (`scheduling.k8s.io`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplatesFacts {
    /// The names of its templates.
    pub templates: BTreeSet<String>,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// Koordinator's preemptible label of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptibleLabel {
    /// The pod has no such label.
    Missing,
    /// The label is exactly `false`.
    No,
    /// The label has any other value.
    Yes,
}

impl PreemptibleLabel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Missing, Self::No, Self::Yes];

    /// Parses the value of the label.
    #[must_use]
    pub fn parse(value: Option<&str>) -> Self {
        match value {
            None => Self::Missing,
            Some("false") => Self::No,
            Some(_) => Self::Yes,
        }
    }
}

/// The priority of a pod, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPriority {
    /// Unknown, because only the metadata of the pod are available.
    #[default]
    Unknown,
    /// No class and no priority yet.
    Unset,
    /// This priority.
    Value(i32),
    /// This class, and no priority yet.
    Class(String),
}

/// The preemption settings that the pods of one job should share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodPreemptionLabels {
    /// Whether it may be a victim.
    pub preemptible: PreemptibleLabel,
    /// Whether it may trigger preemption.
    pub can_preempt: bool,
    /// Its priority.
    pub priority: PodPriority,
}

/// The facts of a Koordinator ElasticQuota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaFacts {
    /// The parent quota.
    pub parent: String,
    /// Whether it may have children.
    pub is_parent: bool,
    /// The id of its tree; empty if unset.
    pub tree_id: String,
    /// The guaranteed amounts.
    pub min: ResourceQuantities,
    /// The limits.
    pub max: ResourceQuantities,
    /// The amounts that its tree keeps available for it.
    pub guaranteed: ResourceQuantities,
    /// The namespaces whose pods use it.
    pub namespaces: BTreeSet<String>,
}

/// The name and facts of a quota.
pub type NamedQuota<'a> = (&'a str, &'a QuotaFacts);

/// Other objects, as rules look them up. Lookups are answered from memory. A view that extends another one returns it
/// from [`ClusterView::fallback`] and implements only the lookups it extends.
pub trait ClusterView {
    /// The view for lookups that this one does not implement; without one their result is unknown.
    fn fallback(&self) -> Option<&dyn ClusterView> {
        None
    }

    /// The PriorityClass of this name. Callers handle the two built-in `system-` classes.
    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts>;

    /// The PriorityClass marked as global default: of several the one with the lowest value, as in Kubernetes, then
    /// the first by name.
    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)>;

    /// The names of some PriorityClasses, for messages. Kubernetes' `system-` classes are not for general use and are
    /// left out.
    fn priority_class_names(&self, limit: usize) -> Vec<String> {
        self.fallback()
            .map_or_else(Vec::new, |it| it.priority_class_names(limit))
    }

    /// The unfinished Workloads that use this PriorityClass.
    fn priority_class_referrers(&self, name: &str, limit: usize) -> Referrers {
        self.fallback().map_or_else(Referrers::default, |view| {
            view.priority_class_referrers(name, limit)
        })
    }

    /// The value and name of the lowest PriorityClass, or `WorkloadPriorityClass` of Kueue, other than `except`.
    fn lowest_class(&self, kind: IndexedKind, except: &str) -> Lookup<(i32, &str)> {
        self.fallback()
            .map_or(Lookup::Unknown, |it| it.lowest_class(kind, except))
    }

    /// Whether an object of a cluster-scoped kind exists.
    fn exists(&self, kind: IndexedKind, name: &str) -> Lookup<()> {
        self.fallback()
            .map_or(Lookup::Unknown, |it| it.exists(kind, name))
    }

    /// The LocalQueue of lockkeeper with this namespace and name.
    fn local_queue(&self, namespace: &str, name: &str) -> Lookup<&LocalQueueFacts> {
        self.fallback()
            .map_or(Lookup::Unknown, |it| it.local_queue(namespace, name))
    }

    /// The quota trees of a project, as far as known.
    fn tree(&self, project: Project) -> &Tree {
        self.fallback()
            .map_or(&cohort_trees::EMPTY, |it| it.tree(project))
    }

    /// The name of a pod of the job with this label, other than `except`.
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

    /// The name and labels of a pod of the job, other than `except`, that satisfies `differs`. `differs` runs once for
    /// pods with equal labels.
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

    /// The ElasticQuota of this name. Koordinator identifies quotas by name alone; of several in different namespaces
    /// the first by namespace counts.
    fn quota(&self, name: &str) -> Lookup<&QuotaFacts> {
        self.fallback().map_or(Lookup::Unknown, |it| it.quota(name))
    }

    /// Another namespace with an ElasticQuota of this name.
    fn quota_in_other_namespace(&self, name: &str, namespace: &str) -> Option<&str> {
        self.fallback()?.quota_in_other_namespace(name, namespace)
    }

    /// The children of an ElasticQuota, by name; none if unknown.
    fn quota_children(&self, name: &str) -> Vec<NamedQuota<'_>> {
        self.fallback()
            .map_or_else(Vec::new, |it| it.quota_children(name))
    }

    /// An ElasticQuota other than `except` with this namespace in its annotation.
    fn quota_bound_to(&self, namespace: &str, except: &str) -> Option<&str> {
        self.fallback()?.quota_bound_to(namespace, except)
    }

    /// The ElasticQuota for pods of a namespace without a quota label: the one in the namespace with its name, else the
    /// first with the namespace in its annotation.
    fn quota_of_namespace(&self, namespace: &str) -> Option<&str> {
        self.fallback()?.quota_of_namespace(namespace)
    }

    /// The pods with the label of this ElasticQuota.
    fn quota_pods(&self, name: &str, limit: usize) -> Referrers {
        self.fallback()
            .map_or_else(Referrers::default, |it| it.quota_pods(name, limit))
    }

    /// The first pod of this namespace.
    fn pod_in(&self, namespace: &str) -> Option<&str> {
        self.fallback()?.pod_in(namespace)
    }

    /// The `CustomResourceDefinition` of this name. A view that finds none may return that of the kind in the group of the name.
    fn definition(&self, name: &str, kind: &str) -> Lookup<&Value> {
        self.fallback()
            .map_or(Lookup::Unknown, |it| it.definition(name, kind))
    }

    /// The templates of a Workload of Kubernetes.
    fn templates(&self, namespace: &str, workload: &str) -> Lookup<TemplatesFacts> {
        self.fallback()
            .map_or(Lookup::Unknown, |it| it.templates(namespace, workload))
    }
}
