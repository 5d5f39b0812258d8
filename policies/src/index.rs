//! A world in memory, kept up to date by events. It holds only the facts that rules use.

use crate::world::{Lookup, ObjectName, PreemptibleLabel, PriorityClassFacts, Users, World};
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
    /// A pod that carries a job label.
    Pod,
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
        job: String,
        /// What it says about being a victim.
        label: PreemptibleLabel,
    },
}

impl Facts {
    fn kind(&self) -> IndexedKind {
        match self {
            Self::PriorityClass(_) => IndexedKind::PriorityClass,
            Self::Workload { .. } => IndexedKind::Workload,
            Self::Pod { .. } => IndexedKind::Pod,
        }
    }
}

/// Namespace, job and what its pods say.
type JobKey = (String, String, PreemptibleLabel);

/// Facts of many objects. Every event and every question costs O(log n).
#[derive(Clone, Debug, Default)]
pub struct Index {
    known: BTreeSet<IndexedKind>,
    objects: BTreeMap<(IndexedKind, ObjectName), Facts>,
    counts: BTreeMap<IndexedKind, usize>,
    global_defaults: BTreeSet<(i32, String)>,
    class_users: BTreeMap<String, BTreeSet<ObjectName>>,
    job_pods: BTreeMap<JobKey, BTreeSet<String>>,
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
            Facts::Pod { job, label } => {
                let key = (name.namespace.clone(), job.clone(), *label);
                self.job_pods
                    .entry(key)
                    .or_default()
                    .insert(name.name.clone());
            }
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
            Facts::Pod { job, label } => {
                let key = (name.namespace.clone(), job.clone(), *label);
                drop_from(&mut self.job_pods, &key, &name.name);
            }
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
            Some((value, name)) => Lookup::Found((
                name.clone(),
                PriorityClassFacts {
                    value: *value,
                    global_default: true,
                },
            )),
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
        match self.class_users.get(name) {
            None => Users::default(),
            Some(users) => Users {
                total: users.len(),
                first: users.iter().take(limit).cloned().collect(),
            },
        }
    }

    fn job_pod(
        &self,
        namespace: &str,
        job: &str,
        label: PreemptibleLabel,
        except: &str,
    ) -> Option<String> {
        let key = (namespace.to_owned(), job.to_owned(), label);
        let pods = self.job_pods.get(&key)?;
        pods.iter().find(|name| *name != except).cloned()
    }
}
