//! A cluster view in memory, kept up to date by events. It stores only the facts that rules use.

mod job_pods;
mod quotas;

use crate::cluster_view::{
    ClusterView, Lookup, NamedQuota, ObjectName, PodPreemptionLabels, PreemptibleLabel,
    PriorityClassFacts, QuotaFacts, Referrers, TemplatesFacts,
};
use crate::cohort_trees::{FlavorFacts, LocalQueueFacts, NodeFacts, NodeKind, Tree};
use crate::declared_suspension::DeclaredSuspension;
use crate::multimap::remove_from;
pub use crate::object_kind::IndexedKind;
use crate::object_kind::Project;
use job_pods::JobPods;
use lockkeeper_api::foreign::scheduling::SYSTEM_PREFIX;
use quotas::Quotas;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The facts of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts {
    /// Of a PriorityClass.
    PriorityClass(PriorityClassFacts),
    /// Of a Workload: the PriorityClasses it uses; none once it is finished.
    Workload {
        /// Their names.
        classes: BTreeSet<String>,
    },
    /// Of a pod.
    Pod {
        /// The value of its job label.
        job: Option<String>,
        /// The value of its quota label.
        quota: Option<String>,
        /// The settings that all pods of its job should share.
        labels: PodPreemptionLabels,
    },
    /// Of an ElasticQuota.
    ElasticQuota(Box<QuotaFacts>),
    /// Of a Workload of Kubernetes.
    Templates(TemplatesFacts),
    /// Of a ClusterQueue.
    ClusterQueue(Project, Arc<NodeFacts>),
    /// Of a Cohort.
    Cohort(Project, Arc<NodeFacts>),
    /// Of a ResourceFlavor.
    ResourceFlavor(Project, FlavorFacts),
    /// Of a LocalQueue.
    LocalQueue(Project, LocalQueueFacts),
    /// Of a `WorkloadPriorityClass`: its value.
    WorkloadPriorityClass(i32),
    /// Of a `JobKind` without mistakes.
    JobKind(Arc<DeclaredSuspension>),
}

impl Facts {
    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> IndexedKind {
        match self {
            Self::PriorityClass(_) => IndexedKind::PriorityClass,
            Self::Workload { .. } => IndexedKind::Workload,
            Self::Pod { .. } => IndexedKind::Pod,
            Self::ElasticQuota(_) => IndexedKind::ElasticQuota,
            Self::Templates(_) => IndexedKind::Templates,
            Self::ClusterQueue(project, _) => IndexedKind::ClusterQueue(*project),
            Self::Cohort(project, _) => IndexedKind::Cohort(*project),
            Self::ResourceFlavor(project, _) => IndexedKind::ResourceFlavor(*project),
            Self::LocalQueue(project, _) => IndexedKind::LocalQueue(*project),
            Self::WorkloadPriorityClass(_) => IndexedKind::WorkloadPriorityClass,
            Self::JobKind(_) => IndexedKind::JobKind,
        }
    }
}

/// The facts of many objects. Events and lookups cost O(log n).
#[derive(Clone, Debug, Default)]
pub struct Index {
    complete_kinds: BTreeSet<IndexedKind>,
    objects: BTreeMap<(IndexedKind, ObjectName), Facts>,
    counts: BTreeMap<IndexedKind, usize>,
    global_defaults: BTreeSet<(i32, String)>,
    class_referrers: BTreeMap<String, BTreeSet<ObjectName>>,
    job_pods: JobPods,
    quotas: Quotas,
    quota_pods: BTreeMap<String, BTreeSet<ObjectName>>,
    classes: BTreeMap<IndexedKind, BTreeSet<(i32, String)>>,
    lockkeeper: Tree,
    kueue: Tree,
}

impl Index {
    /// Marks a kind as complete: objects that are not in the index do not exist.
    pub fn mark_complete(&mut self, kind: IndexedKind) {
        self.complete_kinds.insert(kind);
    }

    /// Marks every kind as complete.
    pub fn mark_all_complete(&mut self) {
        self.complete_kinds.extend(IndexedKind::ALL);
    }

    /// Adds or updates an object, and marks its kind as complete.
    pub fn apply(&mut self, name: ObjectName, facts: Facts) {
        let kind = facts.kind();
        // Unlink the former facts first: they may name another parent, job or class.
        self.remove(kind, &name);
        self.complete_kinds.insert(kind);
        self.link(&name, &facts);
        self.objects.insert((kind, name), facts);
        let count = self.counts.entry(kind).or_default();
        *count = count.saturating_add(1);
    }

    /// Adds the objects of another index, which wins for objects in both.
    pub fn extend(&mut self, mut other: Self) {
        if self.objects.is_empty() {
            // Without objects this index has only complete kinds and ambiguity, which `absorb` merges.
            std::mem::swap(self, &mut other);
        }
        self.absorb(other, Self::apply);
    }

    /// Merges another index, as [`Index::merge`] does for one object.
    pub fn merge_all(&mut self, other: Self) {
        self.absorb(other, Self::merge);
    }

    fn absorb(&mut self, other: Self, put: fn(&mut Self, ObjectName, Facts)) {
        for project in [Project::Lockkeeper, Project::Kueue] {
            if other.tree(project).is_ambiguous() {
                self.tree_mut(project).set_ambiguous();
            }
        }
        for ((_, name), facts) in other.objects {
            put(self, name, facts);
        }
        // A kind without objects is complete, too, so `apply` alone would not mark it.
        self.complete_kinds.extend(other.complete_kinds);
    }

    /// Adds an object that may be in the index already. A different version of it makes its tree ambiguous, because
    /// either version could be the valid one.
    pub fn merge(&mut self, name: ObjectName, facts: Facts) {
        let key = (facts.kind(), name);
        let is_another = self.objects.get(&key).is_some_and(|it| *it != facts);
        if let (true, Some(project)) = (is_another, key.0.project()) {
            self.tree_mut(project).set_ambiguous();
        }
        self.apply(key.1, facts);
    }

    /// Removes an object, if present.
    pub fn remove(&mut self, kind: IndexedKind, name: &ObjectName) {
        if let Some(facts) = self.objects.remove(&(kind, name.clone())) {
            self.unlink(name, &facts);
            let count = self.counts.entry(kind).or_default();
            *count = count.saturating_sub(1);
        }
    }

    /// Removes objects of a kind that are not in `present`, after a new list. Costs O(n log n).
    pub fn retain(&mut self, kind: IndexedKind, present: &BTreeSet<ObjectName>) {
        let removed: Vec<ObjectName> = self
            .objects
            .keys()
            .filter(|(other, name)| *other == kind && !present.contains(name))
            .map(|(_, name)| name.clone())
            .collect();
        for name in removed {
            self.remove(kind, &name);
        }
        self.complete_kinds.insert(kind);
    }

    /// The number of objects of a kind. Costs O(1).
    #[must_use]
    pub fn count(&self, kind: IndexedKind) -> usize {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    /// How jobs of a kind are suspended, if a `JobKind` declares the kind. Costs the number of declarations.
    #[must_use]
    pub fn declared_suspension(&self, group: &str, kind: &str) -> Option<Arc<DeclaredSuspension>> {
        let first = (IndexedKind::JobKind, ObjectName::default());
        let all = self.objects.range(first..);
        let mut declared = all.map_while(|(_, facts)| match facts {
            Facts::JobKind(it) => Some(it),
            _ => None,
        });
        declared
            .find(|it| it.group == group && it.kind == kind)
            .cloned()
    }

    fn link(&mut self, name: &ObjectName, facts: &Facts) {
        match facts {
            Facts::PriorityClass(class) => {
                if class.global_default {
                    self.global_defaults
                        .insert((class.value, name.name.clone()));
                }
                self.add_class(facts.kind(), class.value, name);
            }
            Facts::Workload { classes } => {
                for class in classes {
                    self.class_referrers
                        .entry(class.clone())
                        .or_default()
                        .insert(name.clone());
                }
            }
            Facts::Pod { job, quota, labels } => {
                if let Some(job) = job {
                    self.job_pods.insert(name, job, labels);
                }
                if let Some(quota) = quota {
                    let pods = self.quota_pods.entry(quota.clone()).or_default();
                    pods.insert(name.clone());
                }
            }
            Facts::ElasticQuota(facts) => self.quotas.insert(name, facts),
            Facts::Templates(_) | Facts::JobKind(_) => {}
            Facts::ClusterQueue(project, facts) => {
                let tree = self.tree_mut(*project);
                tree.insert_node(NodeKind::Queue, &name.name, facts);
            }
            Facts::Cohort(project, facts) => {
                let tree = self.tree_mut(*project);
                tree.insert_node(NodeKind::Cohort, &name.name, facts);
            }
            Facts::ResourceFlavor(project, facts) => {
                self.tree_mut(*project).insert_flavor(&name.name, facts);
            }
            Facts::LocalQueue(project, queue) => {
                self.tree_mut(*project)
                    .insert_local_queue(name, &queue.cluster_queue);
            }
            Facts::WorkloadPriorityClass(value) => self.add_class(facts.kind(), *value, name),
        }
    }

    fn unlink(&mut self, name: &ObjectName, facts: &Facts) {
        match facts {
            Facts::PriorityClass(class) => {
                let key = (class.value, name.name.clone());
                self.global_defaults.remove(&key);
                remove_from(&mut self.classes, &facts.kind(), &key);
            }
            Facts::Workload { classes } => {
                for class in classes {
                    remove_from(&mut self.class_referrers, class, name);
                }
            }
            Facts::Pod { job, quota, labels } => {
                if let Some(job) = job {
                    self.job_pods.remove(name, job, labels);
                }
                if let Some(quota) = quota {
                    remove_from(&mut self.quota_pods, quota, name);
                }
            }
            Facts::ElasticQuota(facts) => self.quotas.remove(name, facts),
            Facts::Templates(_) | Facts::JobKind(_) => {}
            Facts::ClusterQueue(project, facts) => {
                let tree = self.tree_mut(*project);
                tree.remove_node(NodeKind::Queue, &name.name, facts);
            }
            Facts::Cohort(project, facts) => {
                let tree = self.tree_mut(*project);
                tree.remove_node(NodeKind::Cohort, &name.name, facts);
            }
            Facts::ResourceFlavor(project, facts) => {
                self.tree_mut(*project).remove_flavor(&name.name, facts);
            }
            Facts::LocalQueue(project, queue) => {
                self.tree_mut(*project)
                    .remove_local_queue(name, &queue.cluster_queue);
            }
            Facts::WorkloadPriorityClass(value) => {
                let key = (*value, name.name.clone());
                remove_from(&mut self.classes, &facts.kind(), &key);
            }
        }
    }

    fn add_class(&mut self, kind: IndexedKind, value: i32, name: &ObjectName) {
        let all = self.classes.entry(kind).or_default();
        all.insert((value, name.name.clone()));
    }

    fn tree_mut(&mut self, project: Project) -> &mut Tree {
        match project {
            Project::Lockkeeper => &mut self.lockkeeper,
            Project::Kueue => &mut self.kueue,
        }
    }

    fn class(&self, name: &str) -> Option<PriorityClassFacts> {
        let key = ObjectName {
            namespace: String::new(),
            name: name.to_owned(),
        };
        match self.objects.get(&(IndexedKind::PriorityClass, key)) {
            Some(Facts::PriorityClass(facts)) => Some(*facts),
            _ => None,
        }
    }

    /// The facts of the ElasticQuota of this namespace and name.
    fn quota_at(&self, name: &ObjectName) -> Option<&QuotaFacts> {
        match self.objects.get(&(IndexedKind::ElasticQuota, name.clone())) {
            Some(Facts::ElasticQuota(facts)) => Some(facts),
            _ => None,
        }
    }

    fn absent_or_unknown<T>(&self, kind: IndexedKind) -> Lookup<T> {
        if self.complete_kinds.contains(&kind) {
            Lookup::Absent
        } else {
            Lookup::Unknown
        }
    }
}

impl ClusterView for Index {
    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        match self.class(name) {
            Some(facts) => Lookup::Found(facts),
            None => self.absent_or_unknown(IndexedKind::PriorityClass),
        }
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        // Sorted by value, then name: as in Kubernetes, the lowest of several defaults applies.
        match self.global_defaults.first() {
            None => self.absent_or_unknown(IndexedKind::PriorityClass),
            Some((_, name)) => match self.class(name) {
                Some(facts) => Lookup::Found((name.clone(), facts)),
                None => Lookup::Absent,
            },
        }
    }

    fn priority_class_names(&self, limit: usize) -> Vec<String> {
        self.objects
            .keys()
            // The kind is the first part of the key, so its objects are adjacent.
            .take_while(|(kind, _)| *kind == IndexedKind::PriorityClass)
            .map(|(_, name)| &name.name)
            .filter(|name| !name.starts_with(SYSTEM_PREFIX))
            .take(limit)
            .cloned()
            .collect()
    }

    fn priority_class_referrers(&self, name: &str, limit: usize) -> Referrers {
        Referrers::from_set(self.class_referrers.get(name), limit)
    }

    fn lowest_class(&self, kind: IndexedKind, except: &str) -> Lookup<(i32, &str)> {
        let mut all = self.classes.get(&kind).into_iter().flatten();
        match all.find(|(_, name)| name != except) {
            Some((value, name)) => Lookup::Found((*value, name)),
            None => self.absent_or_unknown(kind),
        }
    }

    fn exists(&self, kind: IndexedKind, name: &str) -> Lookup<()> {
        let is_known = if let IndexedKind::ResourceFlavor(project) = kind {
            // Each flavor of a queue is looked up; the tree needs no copy of the name.
            self.tree(project).has_flavor(name)
        } else {
            let namespace = String::new();
            let name = name.to_owned();
            let key = ObjectName { namespace, name };
            self.objects.contains_key(&(kind, key))
        };
        if is_known {
            Lookup::Found(())
        } else {
            self.absent_or_unknown(kind)
        }
    }

    fn local_queue(&self, namespace: &str, name: &str) -> Lookup<&LocalQueueFacts> {
        let kind = IndexedKind::LocalQueue(Project::Lockkeeper);
        let key = ObjectName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        match self.objects.get(&(kind, key)) {
            Some(Facts::LocalQueue(_, facts)) => Lookup::Found(facts),
            _ => self.absent_or_unknown(kind),
        }
    }

    fn tree(&self, project: Project) -> &Tree {
        match project {
            Project::Lockkeeper => &self.lockkeeper,
            Project::Kueue => &self.kueue,
        }
    }

    fn job_pod_with_label(
        &self,
        namespace: &str,
        job: &str,
        label: PreemptibleLabel,
        except: &str,
    ) -> Option<String> {
        let has = |labels: &PodPreemptionLabels| labels.preemptible == label;
        let (pod, _) = self.job_pods.find_first(namespace, job, except, &has)?;
        Some(pod.to_owned())
    }

    fn find_job_pod(
        &self,
        namespace: &str,
        job: &str,
        except: &str,
        differs: &dyn Fn(&PodPreemptionLabels) -> bool,
    ) -> Option<(&str, &PodPreemptionLabels)> {
        self.job_pods.find_first(namespace, job, except, differs)
    }

    fn quota(&self, name: &str) -> Lookup<&QuotaFacts> {
        let first = self.quotas.named(name).next();
        match first.and_then(|first| self.quota_at(first)) {
            Some(facts) => Lookup::Found(facts),
            None => self.absent_or_unknown(IndexedKind::ElasticQuota),
        }
    }

    fn quota_in_other_namespace(&self, name: &str, namespace: &str) -> Option<&str> {
        let mut all = self.quotas.named(name).map(|it| it.namespace.as_str());
        all.find(|other| *other != namespace)
    }

    fn quota_children(&self, name: &str) -> Vec<NamedQuota<'_>> {
        let children = self.quotas.children(name);
        children
            .filter_map(|child| Some((child.name.as_str(), self.quota_at(child)?)))
            .collect()
    }

    fn quota_bound_to(&self, namespace: &str, except: &str) -> Option<&str> {
        self.quotas
            .bound_to(namespace)
            .map(|quota| quota.name.as_str())
            .find(|name| *name != except)
    }

    fn quota_of_namespace(&self, namespace: &str) -> Option<&str> {
        let mut alike = self.quotas.named(namespace);
        match alike.find(|quota| quota.namespace == namespace) {
            Some(quota) => Some(&quota.name),
            None => self.quota_bound_to(namespace, ""),
        }
    }

    fn quota_pods(&self, name: &str, limit: usize) -> Referrers {
        Referrers::from_set(self.quota_pods.get(name), limit)
    }

    fn pod_in(&self, namespace: &str) -> Option<&str> {
        let first = ObjectName {
            namespace: namespace.to_owned(),
            name: String::new(),
        };
        // The empty name sorts before all pods of the namespace.
        let mut from = self.objects.range((IndexedKind::Pod, first)..);
        let ((kind, pod), _) = from.next()?;
        (*kind == IndexedKind::Pod && pod.namespace == namespace).then_some(&pod.name)
    }

    fn templates(&self, namespace: &str, workload: &str) -> Lookup<TemplatesFacts> {
        let name = ObjectName {
            namespace: namespace.to_owned(),
            name: workload.to_owned(),
        };
        match self.objects.get(&(IndexedKind::Templates, name)) {
            Some(Facts::Templates(facts)) => Lookup::Found(facts.clone()),
            _ => self.absent_or_unknown(IndexedKind::Templates),
        }
    }
}
