#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use super::*;
use crate::cohort_trees::Node;
use proptest::option;
use proptest::prelude::*;
use std::sync::Arc;

const COHORTS: usize = 4;

/// A node of a tree of one flavor and resource, in small numbers. The first ones are cohorts, and the first of
/// them the root.
#[derive(Clone, Debug)]
struct Small {
    parent: Option<usize>,
    nominal: i64,
    borrowing: Option<i64>,
    lending: Option<i64>,
    /// The usage, for queues.
    used: i64,
}

/// Kueue's arithmetic (`resource_node.go`), node by node.
struct Model<'a> {
    nodes: &'a [Small],
    usage: Vec<i64>,
}

impl<'a> Model<'a> {
    fn new(nodes: &'a [Small]) -> Self {
        let usage = vec![0; nodes.len()];
        let mut model = Self { nodes, usage };
        for (index, node) in nodes.iter().enumerate().skip(COHORTS) {
            model.add(index, node.used);
        }
        model
    }

    fn add(&mut self, node: usize, amount: i64) {
        let free = (self.local(node) - self.usage[node]).max(0);
        self.usage[node] += amount;
        if let Some(parent) = self.nodes[node].parent
            && amount > free
        {
            self.add(parent, amount - free);
        }
    }

    fn subtree(&self, node: usize) -> i64 {
        let children = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, it)| it.parent == Some(node));
        let shared = children.map(|(child, _)| self.subtree(child) - self.local(child));
        self.nodes[node].nominal + shared.sum::<i64>()
    }

    fn local(&self, node: usize) -> i64 {
        let limit = self.nodes[node].lending;
        limit.map_or(0, |limit| (self.subtree(node) - limit).max(0))
    }

    fn available(&self, node: usize) -> i64 {
        let (subtree, local, usage) = (self.subtree(node), self.local(node), self.usage[node]);
        let Some(parent) = self.nodes[node].parent else {
            return subtree - usage;
        };
        let above = self.available(parent);
        let above = match self.nodes[node].borrowing {
            Some(limit) => above.min(subtree - local - (usage - local).max(0) + limit),
            None => above,
        };
        (local - usage).max(0) + above
    }
}

fn of() -> FlavorResource<'static> {
    ("default", "cpu")
}

fn name(index: usize) -> Node {
    let kind = if index < COHORTS {
        NodeKind::Cohort
    } else {
        NodeKind::Queue
    };
    (kind, format!("n{index}"))
}

fn facts(node: &Small) -> NodeFacts {
    let limits = Limits {
        nominal: node.nominal.into(),
        borrowing: node.borrowing.map(Quantity::from),
        lending: node.lending.map(Quantity::from),
    };
    NodeFacts {
        parent: node.parent.map(|parent| name(parent).1),
        quotas: [(of(), limits)].into_iter().collect(),
        ..NodeFacts::default()
    }
}

fn small(index: usize) -> impl Strategy<Value = Small> {
    let limit = || option::of(0..8_i64);
    (
        0..index.clamp(1, COHORTS),
        0..6_i64,
        limit(),
        limit(),
        0..8_i64,
    )
        .prop_map(move |(parent, nominal, borrowing, lending, used)| {
            let is_root = index == 0;
            Small {
                parent: (!is_root).then_some(parent),
                nominal,
                borrowing: borrowing.filter(|_| !is_root),
                lending: lending.filter(|_| !is_root),
                used,
            }
        })
}

fn nodes() -> impl Strategy<Value = Vec<Small>> {
    (0..9_usize).map(small).collect::<Vec<_>>()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A borrowing limit of at least the borrowable quota has no effect for any usage; a lower one has an effect
    /// without usage.
    #[test]
    fn max_borrowable_equals_limit_where_borrowing_stops(nodes in nodes(), at in 1..9_usize) {
        let mut tree = Tree::new();
        for (index, node) in nodes.iter().enumerate() {
            let (kind, name) = name(index);
            tree.insert_node(kind, &name, &Arc::new(facts(node)));
        }
        let (kind, its_name) = name(at);
        let (its_facts, of) = (facts(&nodes[at]), of());
        let its_facts = SubjectFacts::Stored(&its_facts);
        let whole = HypotheticalTree::for_node(&tree, kind, &its_name, its_facts).unwrap();
        let most = whole.totals(of).unwrap().max_borrowable().unwrap();
        let mut free = nodes.clone();
        free[at].borrowing = None;
        for limit in 0..8 {
            let mut limited = nodes.clone();
            limited[at].borrowing = Some(limit);
            if Quantity::from(limit) >= most {
                let (limited, free) = (Model::new(&limited), Model::new(&free));
                prop_assert_eq!(limited.available(at), free.available(at));
            } else {
                let mut unused = [limited, free.clone()];
                unused.iter_mut().flatten().for_each(|it| it.used = 0);
                let [limited, free] = unused.each_ref().map(|it| Model::new(it).available(at));
                prop_assert!(limited < free, "{} {}", limited, free);
            }
        }
        let own = whole.totals(of).unwrap().subtree_quota();
        prop_assert_eq!(own, Quantity::from(Model::new(&nodes).subtree(at)));
    }
}

#[test]
fn tree_with_cohort_cycle_has_no_totals() {
    let mut tree = Tree::new();
    let in_cohort = |above: &str| NodeFacts {
        parent: Some(above.to_owned()),
        ..NodeFacts::default()
    };
    for (name, above) in [("a", "b"), ("b", "a"), ("c", "a")] {
        tree.insert_node(NodeKind::Cohort, name, &Arc::new(in_cohort(above)));
    }
    for above in ["a", "c"] {
        let facts = in_cohort(above);
        let facts = SubjectFacts::Stored(&facts);
        assert!(HypotheticalTree::for_node(&tree, NodeKind::Queue, "q", facts).is_none());
        assert!(HypotheticalTree::for_node(&tree, NodeKind::Cohort, "d", facts).is_none());
    }
    let facts = in_cohort("b");
    let facts = SubjectFacts::Stored(&facts);
    assert!(HypotheticalTree::for_node(&tree, NodeKind::Cohort, "a", facts).is_none());
    assert!(matches!(
        path_to_root(&tree, "d", Some("c")),
        CohortPath::CycleAbove
    ));
    // A new parent of the subject removes the cycle.
    let facts = in_cohort("root");
    let facts = SubjectFacts::Stored(&facts);
    let whole = HypotheticalTree::for_node(&tree, NodeKind::Cohort, "a", facts).unwrap();
    assert_eq!(whole.nodes.len(), 4);
}
