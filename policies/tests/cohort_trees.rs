//! The quota trees do not depend on the order of events, and their lookups equal a scan over all objects.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

use lockkeeper_api::quantity::Quantity;
use lockkeeper_policies::cluster_view::{ClusterView, Lookup, ObjectName};
use lockkeeper_policies::cohort_trees::{
    FlavorFacts, Limits, LocalQueueFacts, NodeFacts, NodeKind, Project,
};
use lockkeeper_policies::index::{Facts, Index, IndexedKind};
use lockkeeper_policies::preemption_loops::QueuePreemption;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Few names, so that several events concern the same object.
const NAMES: [&str; 3] = ["a", "b", "c"];

const FAMILIES: [Project; 2] = [Project::Lockkeeper, Project::Kueue];

type Objects = BTreeMap<(IndexedKind, ObjectName), Facts>;

#[derive(Clone, Debug)]
enum Event {
    Apply(ObjectName, Facts),
    Remove(IndexedKind, ObjectName),
    Retain(IndexedKind, BTreeSet<ObjectName>),
}

fn feed(index: &mut Index, objects: &mut Objects, event: Event) {
    match event {
        Event::Apply(name, facts) => {
            objects.insert((facts.kind(), name.clone()), facts.clone());
            index.apply(name, facts);
        }
        Event::Remove(kind, name) => {
            objects.remove(&(kind, name.clone()));
            index.remove(kind, &name);
        }
        Event::Retain(kind, present) => {
            objects.retain(|(other, name), _| *other != kind || present.contains(name));
            index.retain(kind, &present);
        }
    }
}

/// The nodes of a project and their facts.
fn nodes(objects: &Objects, family: Project) -> Vec<((NodeKind, &str), &NodeFacts)> {
    let all = objects.iter().filter_map(|((_, name), facts)| {
        let (its, kind, facts) = match facts {
            Facts::ClusterQueue(its, facts) => (its, NodeKind::Queue, facts),
            Facts::Cohort(its, facts) => (its, NodeKind::Cohort, facts),
            _ => return None,
        };
        (*its == family).then_some(((kind, &*name.name), &**facts))
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|it| it.0);
    all
}

fn check(index: &Index, objects: &Objects) -> Result<(), TestCaseError> {
    let mut fresh = Index::default();
    for ((_, name), facts) in objects {
        fresh.apply(name.clone(), facts.clone());
    }
    for family in FAMILIES {
        let tree = index.tree(family);
        prop_assert_eq!(tree, fresh.tree(family));
        let nodes = nodes(objects, family);
        for name in NAMES {
            let below: Vec<_> = tree
                .children(name)
                .map(|(kind, name)| (*kind, &**name))
                .collect();
            let in_it = |facts: &NodeFacts| facts.parent.as_deref() == Some(name);
            let scanned: Vec<_> = nodes
                .iter()
                .filter(|it| in_it(it.1))
                .map(|it| it.0)
                .collect();
            prop_assert_eq!(below, scanned);
            let users = tree.users(name).count();
            let has = |facts: &NodeFacts| facts.quotas.flavors().any(|flavor| flavor == name);
            prop_assert_eq!(users, nodes.iter().filter(|it| has(it.1)).count());
            let kind = IndexedKind::ResourceFlavor(family);
            let key = (kind, cluster_scoped(name));
            let exists = index.exists(kind, name) == Lookup::Found(());
            prop_assert_eq!(exists, objects.contains_key(&key));
            prop_assert!(tree.same_node_flavors(name).all(|it| it != name));
        }
    }
    let values = objects.iter().filter_map(|((_, name), facts)| match facts {
        Facts::WorkloadPriorityClass(value) if name.name != "a" => Some((*value, &*name.name)),
        _ => None,
    });
    let lowest = index.lowest_class(IndexedKind::WorkloadPriorityClass, "a");
    prop_assert_eq!(lowest.found(), values.min());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn trees_match_a_rebuild_from_the_objects(events in vec(event(), 0..32)) {
        let (mut index, mut objects) = (Index::default(), Objects::new());
        for event in events {
            feed(&mut index, &mut objects, event);
            check(&index, &objects)?;
        }
    }
}

fn cluster_scoped(name: &str) -> ObjectName {
    ObjectName {
        namespace: String::new(),
        name: name.to_owned(),
    }
}

fn name() -> impl Strategy<Value = ObjectName> {
    select(NAMES.to_vec()).prop_map(cluster_scoped)
}

fn word() -> impl Strategy<Value = String> {
    select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn event() -> impl Strategy<Value = Event> {
    let kind = || select(IndexedKind::ALL.to_vec());
    prop_oneof![
        12 => (name(), facts()).prop_map(|(name, facts)| Event::Apply(name, facts)),
        4 => (kind(), name()).prop_map(|(kind, name)| Event::Remove(kind, name)),
        1 => (kind(), btree_set(name(), 0..3)).prop_map(|(kind, present)| Event::Retain(kind, present)),
    ]
}

fn facts() -> impl Strategy<Value = Facts> {
    let family = || select(FAMILIES.to_vec());
    let limits = Limits {
        nominal: Quantity::from(1),
        borrowing: None,
        lending: None,
    };
    let quotas = btree_map(
        (select(NAMES.to_vec()), select(NAMES.to_vec())),
        Just(limits),
        0..3,
    );
    let node =
        (option::of(word()), quotas, any::<bool>()).prop_map(|(above, quotas, takes_equals)| {
            Arc::new(NodeFacts {
                parent: above,
                quotas: quotas.into_iter().collect(),
                has_checks: false,
                preempts_equals: takes_equals,
                places_on_nodes: false,
                preemption: QueuePreemption::default(),
                allowed_priority_classes: None,
            })
        });
    let node = node.boxed();
    let flavor = option::of(word()).prop_map(|nodes| FlavorFacts { nodes });
    prop_oneof![
        (family(), node.clone()).prop_map(|(family, node)| Facts::ClusterQueue(family, node)),
        (family(), node).prop_map(|(family, node)| Facts::Cohort(family, node)),
        (family(), flavor).prop_map(|(family, flavor)| Facts::ResourceFlavor(family, flavor)),
        (family(), word()).prop_map(|(family, cluster_queue)| {
            let facts = LocalQueueFacts {
                cluster_queue,
                ..LocalQueueFacts::default()
            };
            Facts::LocalQueue(family, facts)
        }),
        (-1..2).prop_map(Facts::WorkloadPriorityClass),
    ]
}
