//! The index answers every question as a scan over a plain list of objects would, whatever events
//! it was fed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use lockkeeper_policies::world::{
    Lookup, ObjectName, PreemptibleLabel, PriorityClassFacts, Users, World,
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;

const KINDS: [IndexedKind; 3] = [
    IndexedKind::PriorityClass,
    IndexedKind::Workload,
    IndexedKind::Pod,
];

/// Few names, so that events meet the same objects again.
const NAMES: [&str; 3] = ["a", "b", "c"];
const NAMESPACES: [&str; 2] = ["x", "y"];

#[derive(Clone, Debug)]
enum Event {
    DeclareKnown(IndexedKind),
    Apply(ObjectName, Facts),
    Remove(IndexedKind, ObjectName),
    Retain(IndexedKind, BTreeSet<ObjectName>),
}

// ---- The model ---------------------------------------------------------------------------------

/// The objects in no order; every question scans them all.
#[derive(Debug, Default)]
struct Model {
    known: Vec<IndexedKind>,
    objects: Vec<(IndexedKind, ObjectName, Facts)>,
}

impl Model {
    fn take(&mut self, event: Event) {
        match event {
            Event::DeclareKnown(kind) => self.known.push(kind),
            Event::Apply(name, facts) => {
                let kind = kind_of(&facts);
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

    fn or_missing<T>(&self, found: Option<T>) -> Lookup<T> {
        match found {
            Some(found) => Lookup::Found(found),
            None if self.known.contains(&IndexedKind::PriorityClass) => Lookup::Absent,
            None => Lookup::Unknown,
        }
    }
}

impl World for Model {
    fn priority_class(&self, name: &str) -> Lookup<PriorityClassFacts> {
        let found = self.classes().into_iter().find(|(other, _)| other == name);
        self.or_missing(found.map(|(_, facts)| facts))
    }

    fn global_default(&self) -> Lookup<(String, PriorityClassFacts)> {
        let classes = self.classes().into_iter();
        let defaults = classes.filter(|(_, facts)| facts.global_default);
        self.or_missing(defaults.min_by_key(|(_, facts)| facts.value))
    }

    fn priority_class_names(&self, limit: usize) -> Vec<String> {
        let names = self.classes().into_iter().map(|(name, _)| name);
        names.take(limit).collect()
    }

    fn priority_class_users(&self, name: &str, limit: usize) -> Users {
        let mut users = self.objects.clone();
        users.retain(|(_, _, facts)| match facts {
            Facts::Workload { classes } => classes.contains(name),
            _ => false,
        });
        let mut names: Vec<ObjectName> = users.into_iter().map(|(_, name, _)| name).collect();
        names.sort();
        Users {
            total: names.len(),
            first: names.into_iter().take(limit).collect(),
        }
    }

    fn job_pod(
        &self,
        namespace: &str,
        job: &str,
        label: PreemptibleLabel,
        except: &str,
    ) -> Option<String> {
        let facts = Facts::Pod {
            job: job.to_owned(),
            label,
        };
        let pods = self.objects.iter().filter(|(_, _, other)| *other == facts);
        let names = pods.filter(|(_, name, _)| name.namespace == namespace && name.name != except);
        names.map(|(_, name, _)| name.name.clone()).min()
    }
}

fn kind_of(facts: &Facts) -> IndexedKind {
    match facts {
        Facts::PriorityClass(_) => IndexedKind::PriorityClass,
        Facts::Workload { .. } => IndexedKind::Workload,
        Facts::Pod { .. } => IndexedKind::Pod,
    }
}

// ---- The property ------------------------------------------------------------------------------

fn feed(index: &mut Index, event: Event) {
    match event {
        Event::DeclareKnown(kind) => index.declare_known(kind),
        Event::Apply(name, facts) => index.apply(name, facts),
        Event::Remove(kind, name) => index.remove(kind, &name),
        Event::Retain(kind, present) => index.retain(kind, &present),
    }
}

/// Asks both every question about every name that occurs.
fn check(index: &Index, model: &Model) -> Result<(), TestCaseError> {
    for kind in KINDS {
        prop_assert_eq!(index.count(kind), model.count(kind));
    }
    prop_assert_eq!(index.global_default(), model.global_default());
    for limit in [0, 1, 2, usize::MAX] {
        let names = index.priority_class_names(limit);
        prop_assert_eq!(names, model.priority_class_names(limit));
        for name in NAMES {
            let users = index.priority_class_users(name, limit);
            prop_assert_eq!(users, model.priority_class_users(name, limit));
        }
    }
    for name in NAMES {
        prop_assert_eq!(index.priority_class(name), model.priority_class(name));
        for namespace in NAMESPACES {
            for job in NAMES {
                for label in PreemptibleLabel::ALL {
                    let pod = index.job_pod(namespace, job, label, name);
                    prop_assert_eq!(pod, model.job_pod(namespace, job, label, name));
                }
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
    fn it_answers_as_a_scan_does(events in vec(event(), 0..32)) {
        let (mut index, mut model) = (Index::default(), Model::default());
        check(&index, &model)?;
        for event in events {
            feed(&mut index, event.clone());
            model.take(event);
            check(&index, &model)?;
        }
    }
}

// ---- Generated events --------------------------------------------------------------------------

fn event() -> impl Strategy<Value = Event> {
    let kind = || select(KINDS.to_vec());
    let apply = facts().prop_flat_map(|facts| {
        name(kind_of(&facts)).prop_map(move |name| Event::Apply(name, facts.clone()))
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

/// PriorityClasses live in no namespace.
fn name(kind: IndexedKind) -> impl Strategy<Value = ObjectName> {
    let namespaces = match kind {
        IndexedKind::PriorityClass => vec![""],
        IndexedKind::Workload | IndexedKind::Pod => NAMESPACES.to_vec(),
    };
    (select(namespaces), select(NAMES.to_vec())).prop_map(|(namespace, name)| ObjectName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

fn facts() -> impl Strategy<Value = Facts> {
    let word = || select(NAMES.to_vec()).prop_map(str::to_owned);
    let class = (select(vec![0, 1, -1]), any::<bool>()).prop_map(|(value, global_default)| {
        Facts::PriorityClass(PriorityClassFacts {
            value,
            global_default,
        })
    });
    let workload = btree_set(word(), 0..3).prop_map(|classes| Facts::Workload { classes });
    let pod = (word(), select(PreemptibleLabel::ALL.to_vec()))
        .prop_map(|(job, label)| Facts::Pod { job, label });
    prop_oneof![class, workload, pod]
}
