//! After any sequence of events, every lookup of the index equals a scan over a plain list of objects.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use lockkeeper_policies::cluster_view::{
    ClusterView, Lookup, NamedQuota, ObjectName, PodPreemptionLabels, PodPriority,
    PreemptibleLabel, PreemptionPolicy, PriorityClassFacts, QuotaFacts, Referrers, TemplatesFacts,
};
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;

const KINDS: [IndexedKind; 5] = [
    IndexedKind::PriorityClass,
    IndexedKind::Workload,
    IndexedKind::Pod,
    IndexedKind::ElasticQuota,
    IndexedKind::Templates,
];

/// Few names, so that several events concern the same object.
const NAMES: [&str; 3] = ["a", "b", "c"];
const NAMESPACES: [&str; 2] = ["a", "y"];

#[derive(Clone, Debug)]
enum Event {
    DeclareKnown(IndexedKind),
    Apply(ObjectName, Facts),
    Remove(IndexedKind, ObjectName),
    Retain(IndexedKind, BTreeSet<ObjectName>),
}

// ---- The model ---------------------------------------------------------------------------------

/// The objects in no order; every lookup scans all of them.
#[derive(Debug, Default)]
struct Model {
    known: Vec<IndexedKind>,
    objects: Vec<(IndexedKind, ObjectName, Facts)>,
}

impl Model {
    fn apply(&mut self, event: Event) {
        match event {
            Event::DeclareKnown(kind) => self.known.push(kind),
            Event::Apply(name, facts) => {
                let kind = facts.kind();
                self.objects.retain(|(k, n, _)| (*k, n) != (kind, &name));
                self.objects.push((kind, name, facts));
                self.known.push(kind);
            }
            Event::Remove(kind, name) => self.objects.retain(|(k, n, _)| (*k, n) != (kind, &name)),
            Event::Retain(kind, present) => {
                self.objects
                    .retain(|(k, n, _)| *k != kind || present.contains(n));
                self.known.push(kind);
            }
        }
    }

    fn count(&self, kind: IndexedKind) -> usize {
        self.objects.iter().filter(|(k, _, _)| *k == kind).count()
    }

    fn classes(&self) -> Vec<(String, PriorityClassFacts)> {
        let mut classes: Vec<_> = self
            .objects
            .iter()
            .filter_map(|(_, name, facts)| match facts {
                Facts::PriorityClass(class) => Some((name.name.clone(), *class)),
                _ => None,
            })
            .collect();
        classes.sort_by_key(|(name, _)| name.clone());
        classes
    }

    fn or_missing<T>(&self, kind: IndexedKind, found: Option<T>) -> Lookup<T> {
        match found {
            Some(found) => Lookup::Found(found),
            None if self.known.contains(&kind) => Lookup::Absent,
            None => Lookup::Unknown,
        }
    }

    /// All quotas with their facts, by namespace and name.
    fn quotas(&self) -> Vec<(&ObjectName, &QuotaFacts)> {
        let mut quotas: Vec<_> = self
            .objects
            .iter()
            .filter_map(|(_, name, facts)| match facts {
                Facts::ElasticQuota(facts) => Some((name, &**facts)),
                _ => None,
            })
            .collect();
        quotas.sort_by_key(|(name, _)| *name);
        quotas
    }

    /// The labels and names of the pods of a job, sorted.
    fn job_pods(&self, namespace: &str, job: &str) -> Vec<(&PodPreemptionLabels, &str)> {
        let mut pods: Vec<_> = self
            .objects
            .iter()
            .filter(|(_, name, _)| name.namespace == namespace)
            .filter_map(|(_, name, facts)| match facts {
                Facts::Pod {
                    job: its,
                    labels: says,
                    ..
                } if its.as_deref() == Some(job) => Some((says, name.name.as_str())),
                _ => None,
            })
            .collect();
        pods.sort();
        pods
    }

    /// The sorted names of the objects for which the predicate is true.
    fn users(&self, limit: usize, holds: impl Fn(&Facts) -> bool) -> Referrers {
        let users = self.objects.iter().filter(|(_, _, facts)| holds(facts));
        let mut names: Vec<ObjectName> = users.map(|(_, name, _)| name.clone()).collect();
        names.sort();
        Referrers {
            total: names.len(),
            first: names.into_iter().take(limit).collect(),
        }
    }
}

impl ClusterView for Model {
    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        let found = self.classes().into_iter().find(|(other, _)| other == name);
        let found = found.map(|(_, facts)| facts);
        self.or_missing(IndexedKind::PriorityClass, found)
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        let classes = self.classes().into_iter();
        let defaults = classes.filter(|(_, facts)| facts.global_default);
        let first = defaults.min_by_key(|(_, facts)| facts.value);
        self.or_missing(IndexedKind::PriorityClass, first)
    }

    fn priority_class_names(&self, limit: usize) -> Vec<String> {
        let names = self.classes().into_iter().map(|(name, _)| name);
        names.take(limit).collect()
    }

    fn priority_class_referrers(&self, name: &str, limit: usize) -> Referrers {
        self.users(limit, |facts| match facts {
            Facts::Workload { classes } => classes.contains(name),
            _ => false,
        })
    }

    fn job_pod_with_label(
        &self,
        namespace: &str,
        job: &str,
        label: PreemptibleLabel,
        except: &str,
    ) -> Option<String> {
        let pods = self.job_pods(namespace, job).into_iter();
        let mut pods = pods.filter(|(says, name)| says.preemptible == label && *name != except);
        pods.next().map(|(_, name)| name.to_owned())
    }

    fn find_job_pod(
        &self,
        namespace: &str,
        job: &str,
        except: &str,
        differs: &dyn Fn(&PodPreemptionLabels) -> bool,
    ) -> Option<(&str, &PodPreemptionLabels)> {
        let pods = self.job_pods(namespace, job).into_iter();
        let mut pods = pods.filter(|(says, name)| differs(says) && *name != except);
        pods.next().map(|(says, name)| (name, says))
    }

    fn quota(&self, name: &str) -> Lookup<&QuotaFacts> {
        let quotas = self.quotas();
        let found = quotas.iter().find(|(other, _)| other.name == name);
        self.or_missing(IndexedKind::ElasticQuota, found.map(|(_, facts)| *facts))
    }

    fn quota_in_other_namespace(&self, name: &str, namespace: &str) -> Option<&str> {
        let mut quotas = self.quotas().into_iter();
        let found = quotas.find(|(other, _)| other.name == name && other.namespace != namespace);
        found.map(|(other, _)| other.namespace.as_str())
    }

    fn quota_children(&self, name: &str) -> Vec<NamedQuota<'_>> {
        let quotas = self.quotas().into_iter();
        let below = quotas.filter(|(_, facts)| facts.parent == name);
        below
            .map(|(child, facts)| (child.name.as_str(), facts))
            .collect()
    }

    fn quota_bound_to(&self, namespace: &str, except: &str) -> Option<&str> {
        let mut quotas = self.quotas().into_iter();
        let found = quotas
            .find(|(name, facts)| facts.namespaces.contains(namespace) && name.name != except);
        found.map(|(name, _)| name.name.as_str())
    }

    fn quota_of_namespace(&self, namespace: &str) -> Option<&str> {
        let quotas = self.quotas();
        let alike = |name: &ObjectName| name.name == namespace && name.namespace == namespace;
        match quotas.iter().find(|(name, _)| alike(name)) {
            Some((name, _)) => Some(&name.name),
            None => self.quota_bound_to(namespace, ""),
        }
    }

    fn quota_pods(&self, name: &str, limit: usize) -> Referrers {
        self.users(limit, |facts| match facts {
            Facts::Pod { quota, .. } => quota.as_deref() == Some(name),
            _ => false,
        })
    }

    fn pod_in(&self, namespace: &str) -> Option<&str> {
        let pods = self
            .objects
            .iter()
            .filter(|(kind, name, _)| *kind == IndexedKind::Pod && name.namespace == namespace);
        pods.map(|(_, name, _)| name.name.as_str()).min()
    }

    fn templates(&self, namespace: &str, workload: &str) -> Lookup<TemplatesFacts> {
        let mut objects = self.objects.iter();
        let found = objects.find_map(|(_, name, facts)| match facts {
            Facts::Templates(facts) if name.namespace == namespace && name.name == workload => {
                Some(facts.clone())
            }
            _ => None,
        });
        self.or_missing(IndexedKind::Templates, found)
    }
}

// ---- The property ------------------------------------------------------------------------------

fn feed(index: &mut Index, event: Event) {
    match event {
        Event::DeclareKnown(kind) => index.mark_complete(kind),
        Event::Apply(name, facts) => index.apply(name, facts),
        Event::Remove(kind, name) => index.remove(kind, &name),
        Event::Retain(kind, present) => index.retain(kind, &present),
    }
}

/// Compares every lookup for every name that occurs.
fn check(index: &Index, model: &Model) -> Result<(), TestCaseError> {
    for kind in KINDS {
        prop_assert_eq!(index.count(kind), model.count(kind));
    }
    prop_assert_eq!(index.global_default(), model.global_default());
    for limit in [0, 1, 2, usize::MAX] {
        let names = index.priority_class_names(limit);
        prop_assert_eq!(names, model.priority_class_names(limit));
        for name in NAMES {
            let users = index.priority_class_referrers(name, limit);
            prop_assert_eq!(users, model.priority_class_referrers(name, limit));
            prop_assert_eq!(index.quota_pods(name, limit), model.quota_pods(name, limit));
        }
    }
    for name in NAMES {
        prop_assert_eq!(index.priority_class(name), model.priority_class(name));
        prop_assert_eq!(index.quota(name), model.quota(name));
        prop_assert_eq!(index.quota_children(name), model.quota_children(name));
        // Quotas have the names of namespaces.
        for namespace in NAMESPACES.into_iter().chain(NAMES) {
            let elsewhere = index.quota_in_other_namespace(name, namespace);
            prop_assert_eq!(elsewhere, model.quota_in_other_namespace(name, namespace));
            let bound = index.quota_bound_to(namespace, name);
            prop_assert_eq!(bound, model.quota_bound_to(namespace, name));
            let quota = index.quota_of_namespace(namespace);
            prop_assert_eq!(quota, model.quota_of_namespace(namespace));
            prop_assert_eq!(index.pod_in(namespace), model.pod_in(namespace));
        }
        for namespace in NAMESPACES {
            let templates = index.templates(namespace, name);
            prop_assert_eq!(templates, model.templates(namespace, name));
            for job in NAMES {
                for label in PreemptibleLabel::ALL {
                    let pod = index.job_pod_with_label(namespace, job, label, name);
                    prop_assert_eq!(pod, model.job_pod_with_label(namespace, job, label, name));
                }
                let differs = |says: &PodPreemptionLabels| !says.can_preempt;
                let pod = index.find_job_pod(namespace, job, name, &differs);
                prop_assert_eq!(pod, model.find_job_pod(namespace, job, name, &differs));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn index_lookups_match_a_full_scan(events in vec(event(), 0..32)) {
        let (mut index, mut model) = (Index::default(), Model::default());
        check(&index, &model)?;
        for event in events {
            feed(&mut index, event.clone());
            model.apply(event);
            check(&index, &model)?;
        }
    }

    #[test]
    fn index_extend_contains_the_other_index(before in vec(event(), 0..3), events in vec(event(), 0..16)) {
        let (mut index, mut model) = (Index::default(), Model::default());
        for event in before {
            feed(&mut index, event.clone());
            model.apply(event);
        }
        let (mut other, mut taken) = (Index::default(), Model::default());
        for event in events {
            feed(&mut other, event.clone());
            taken.apply(event);
        }
        index.extend(other);
        model.known.extend(taken.known);
        for (_, name, facts) in taken.objects {
            model.apply(Event::Apply(name, facts));
        }
        check(&index, &model)?;
    }
}

// ---- Generated events --------------------------------------------------------------------------

fn event() -> impl Strategy<Value = Event> {
    let kind = || select(KINDS.to_vec());
    let apply = facts().prop_flat_map(|facts| {
        name(facts.kind()).prop_map(move |name| Event::Apply(name, facts.clone()))
    });
    let remove =
        kind().prop_flat_map(|kind| name(kind).prop_map(move |name| Event::Remove(kind, name)));
    let retain = kind().prop_flat_map(|kind| {
        btree_set(name(kind), 0..4).prop_map(move |present| Event::Retain(kind, present))
    });
    prop_oneof![
        1 => kind().prop_map(Event::DeclareKnown),
        12 => apply,
        4 => remove,
        1 => retain,
    ]
}

/// PriorityClasses are cluster-scoped.
fn name(kind: IndexedKind) -> impl Strategy<Value = ObjectName> {
    let namespaces = match kind {
        IndexedKind::Workload
        | IndexedKind::Pod
        | IndexedKind::ElasticQuota
        | IndexedKind::Templates => NAMESPACES.to_vec(),
        _ => vec![""],
    };
    (select(namespaces), select(NAMES.to_vec())).prop_map(|(namespace, name)| ObjectName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

fn facts() -> impl Strategy<Value = Facts> {
    let word = || select(NAMES.to_vec()).prop_map(str::to_owned);
    let policies = vec![
        None,
        Some(PreemptionPolicy::Never),
        Some(PreemptionPolicy::PreemptLowerPriority),
    ];
    let class = (select(vec![0, 1, -1]), any::<bool>(), select(policies)).prop_map(
        |(value, global_default, preemption_policy)| {
            Facts::PriorityClass(PriorityClassFacts {
                value,
                global_default,
                preemption_policy,
            })
        },
    );
    let workload = btree_set(word(), 0..3).prop_map(|classes| Facts::Workload { classes });
    let quota = (word(), btree_set(word(), 0..3)).prop_map(|(parent, namespaces)| {
        Facts::ElasticQuota(Box::new(QuotaFacts {
            parent,
            namespaces,
            ..QuotaFacts::default()
        }))
    });
    let templates = (btree_set(word(), 0..3), any::<bool>()).prop_map(|(templates, deleting)| {
        Facts::Templates(TemplatesFacts {
            templates,
            deleting,
        })
    });
    prop_oneof![class, workload, pod(), quota, templates]
}

fn pod() -> impl Strategy<Value = Facts> {
    let word = || option::of(select(NAMES.to_vec()).prop_map(str::to_owned));
    let priority = select(vec![
        PodPriority::Unknown,
        PodPriority::Unset,
        PodPriority::Value(-1),
        PodPriority::Class("a".to_owned()),
    ]);
    let labels = (select(PreemptibleLabel::ALL.to_vec()), any::<bool>());
    (word(), word(), labels, priority).prop_map(|(job, quota, labels, priority)| Facts::Pod {
        job,
        quota,
        labels: PodPreemptionLabels {
            preemptible: labels.0,
            can_preempt: labels.1,
            priority,
        },
    })
}
