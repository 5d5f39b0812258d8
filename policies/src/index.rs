//! A world in memory, kept up to date by events. It holds only the facts that rules use.

mod job_pods;
mod quotas;

use crate::world::{
    Lookup, NamedQuota, ObjectName, PodSays, PreemptibleLabel, PriorityClassFacts, QuotaFacts,
    TemplatesFacts, Users, World,
};
use job_pods::JobPods;
use quotas::Quotas;
use std::collections::{BTreeMap, BTreeSet};

/// What the names of Kubernetes' own PriorityClasses begin with.
const SYSTEM_PREFIX: &str = "system-";

/// The kinds of objects that an [`Index`] holds facts of.
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
}

/// The facts of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts {
    /// Of a PriorityClass.
    PriorityClass(PriorityClassFacts),
    /// Of a Workload: the PriorityClasses that it names, none once it is finished.
    Workload {
        /// Their names.
        classes: BTreeSet<String>,
    },
    /// Of a pod.
    Pod {
        /// The value of its job label.
        job: Option<String>,
        /// The ElasticQuota that it names.
        quota: Option<String>,
        /// What it says that its job's other pods should say as well.
        says: PodSays,
    },
    /// Of an ElasticQuota.
    ElasticQuota(Box<QuotaFacts>),
    /// Of a Workload of Kubernetes.
    Templates(TemplatesFacts),
}

impl Facts {
    fn kind(&self) -> IndexedKind {
        match self {
            Self::PriorityClass(_) => IndexedKind::PriorityClass,
            Self::Workload { .. } => IndexedKind::Workload,
            Self::Pod { .. } => IndexedKind::Pod,
            Self::ElasticQuota(_) => IndexedKind::ElasticQuota,
            Self::Templates(_) => IndexedKind::Templates,
        }
    }
}

/// Facts of many objects. Every event and every question costs O(log n).
#[derive(Clone, Debug, Default)]
pub struct Index {
    known: BTreeSet<IndexedKind>,
    objects: BTreeMap<(IndexedKind, ObjectName), Facts>,
    counts: BTreeMap<IndexedKind, usize>,
    global_defaults: BTreeSet<(i32, String)>,
    class_users: BTreeMap<String, BTreeSet<ObjectName>>,
    job_pods: JobPods,
    quotas: Quotas,
    quota_pods: BTreeMap<String, BTreeSet<ObjectName>>,
}

impl Index {
    /// Declares that all objects of a kind are at hand: one that is not here does not exist.
    pub fn declare_known(&mut self, kind: IndexedKind) {
        self.known.insert(kind);
    }

    /// An object was made or changed. Its kind counts as known from then on.
    pub fn apply(&mut self, name: ObjectName, facts: Facts) {
        let kind = facts.kind();
        self.remove(kind, &name);
        self.known.insert(kind);
        self.link(&name, &facts);
        self.objects.insert((kind, name), facts);
        let count = self.counts.entry(kind).or_default();
        *count = count.saturating_add(1);
    }

    /// An object is gone. Nothing happens if it was not here.
    pub fn remove(&mut self, kind: IndexedKind, name: &ObjectName) {
        if let Some(facts) = self.objects.remove(&(kind, name.clone())) {
            self.unlink(name, &facts);
            let count = self.counts.entry(kind).or_default();
            *count = count.saturating_sub(1);
        }
    }

    /// A kind was listed anew: whatever of it is not in `present` is gone. Costs O(n log n).
    pub fn retain(&mut self, kind: IndexedKind, present: &BTreeSet<ObjectName>) {
        let gone: Vec<ObjectName> = self
            .objects
            .keys()
            .filter(|(other, name)| *other == kind && !present.contains(name))
            .map(|(_, name)| name.clone())
            .collect();
        for name in gone {
            self.remove(kind, &name);
        }
        self.known.insert(kind);
    }

    /// The number of objects of a kind. Costs O(1).
    #[must_use]
    pub fn count(&self, kind: IndexedKind) -> usize {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    fn link(&mut self, name: &ObjectName, facts: &Facts) {
        match facts {
            Facts::PriorityClass(class) => {
                if class.global_default {
                    self.global_defaults
                        .insert((class.value, name.name.clone()));
                }
            }
            Facts::Workload { classes } => {
                for class in classes {
                    self.class_users
                        .entry(class.clone())
                        .or_default()
                        .insert(name.clone());
                }
            }
            Facts::Pod { job, quota, says } => {
                if let Some(job) = job {
                    self.job_pods.insert(name, job, says);
                }
                if let Some(quota) = quota {
                    let pods = self.quota_pods.entry(quota.clone()).or_default();
                    pods.insert(name.clone());
                }
            }
            Facts::ElasticQuota(facts) => self.quotas.insert(name, facts),
            Facts::Templates(_) => {}
        }
    }

    fn unlink(&mut self, name: &ObjectName, facts: &Facts) {
        match facts {
            Facts::PriorityClass(class) => {
                self.global_defaults
                    .remove(&(class.value, name.name.clone()));
            }
            Facts::Workload { classes } => {
                for class in classes {
                    drop_from(&mut self.class_users, class, name);
                }
            }
            Facts::Pod { job, quota, says } => {
                if let Some(job) = job {
                    self.job_pods.remove(name, job, says);
                }
                if let Some(quota) = quota {
                    drop_from(&mut self.quota_pods, quota, name);
                }
            }
            Facts::ElasticQuota(facts) => self.quotas.remove(name, facts),
            Facts::Templates(_) => {}
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

    fn missing<T>(&self, kind: IndexedKind) -> Lookup<T> {
        if self.known.contains(&kind) {
            Lookup::Absent
        } else {
            Lookup::Unknown
        }
    }
}

/// Takes `item` out of the set under `key`, and the set out of the map when it is the last one.
fn drop_from<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &K, item: &V) {
    if let Some(set) = map.get_mut(key) {
        set.remove(item);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

/// How many there are, and the first of them.
fn users(all: Option<&BTreeSet<ObjectName>>, limit: usize) -> Users {
    match all {
        None => Users::default(),
        Some(all) => Users {
            total: all.len(),
            first: all.iter().take(limit).cloned().collect(),
        },
    }
}

impl World for Index {
    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        match self.class(name) {
            Some(facts) => Lookup::Found(facts),
            None => self.missing(IndexedKind::PriorityClass),
        }
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        match self.global_defaults.first() {
            None => self.missing(IndexedKind::PriorityClass),
            Some((_, name)) => match self.class(name) {
                Some(facts) => Lookup::Found((name.clone(), facts)),
                None => Lookup::Absent,
            },
        }
    }

    fn priority_class_names(&self, limit: usize) -> Vec<String> {
        self.objects
            .keys()
            .take_while(|(kind, _)| *kind == IndexedKind::PriorityClass)
            .map(|(_, name)| &name.name)
            .filter(|name| !name.starts_with(SYSTEM_PREFIX))
            .take(limit)
            .cloned()
            .collect()
    }

    fn priority_class_users(&self, name: &str, limit: usize) -> Users {
        users(self.class_users.get(name), limit)
    }

    fn job_pod(
        &self,
        namespace: &str,
        job: &str,
        label: PreemptibleLabel,
        except: &str,
    ) -> Option<String> {
        let has = |says: &PodSays| says.preemptible == label;
        let (pod, _) = self.job_pods.first_that(namespace, job, except, &has)?;
        Some(pod.to_owned())
    }

    fn job_pod_that(
        &self,
        namespace: &str,
        job: &str,
        except: &str,
        differs: &dyn Fn(&PodSays) -> bool,
    ) -> Option<(&str, &PodSays)> {
        self.job_pods.first_that(namespace, job, except, differs)
    }

    fn quota(&self, name: &str) -> Lookup<&QuotaFacts> {
        let first = self.quotas.named(name).next();
        match first.and_then(|first| self.quota_at(first)) {
            Some(facts) => Lookup::Found(facts),
            None => self.missing(IndexedKind::ElasticQuota),
        }
    }

    fn quota_elsewhere(&self, name: &str, namespace: &str) -> Option<&str> {
        let mut all = self.quotas.named(name).map(|it| it.namespace.as_str());
        all.find(|other| *other != namespace)
    }

    fn quota_children(&self, name: &str) -> Vec<NamedQuota<'_>> {
        let children = self.quotas.below(name);
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

    fn quota_pods(&self, name: &str, limit: usize) -> Users {
        users(self.quota_pods.get(name), limit)
    }

    fn pod_in(&self, namespace: &str) -> Option<&str> {
        let first = ObjectName {
            namespace: namespace.to_owned(),
            name: String::new(),
        };
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
            _ => self.missing(IndexedKind::Templates),
        }
    }
}
