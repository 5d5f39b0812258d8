#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use crate::cohort_trees::{Limits, NodeFacts, ObjectFacts};
use crate::preemption_loops::{CrossQueueScope, QueuePreemption};
use lockkeeper_api::quota::{FlavorQuotas, ResourceGroup, ResourceQuota};
use proptest::prelude::*;

const RULES: PreemptionRules = PreemptionRules {
    is_fair: true,
    is_damped: false,
};

const RESOURCES: [FlavorResource<'_>; 3] = [("spot", "cpu"), ("spot", "memory"), ("large", "cpu")];

fn quota() -> impl Strategy<Value = Limits> {
    let amount = || (0..5_i64).prop_map(Quantity::from_milli);
    (
        amount(),
        proptest::option::of(amount()),
        proptest::option::of(amount()),
    )
        .prop_map(|(nominal, borrowing, lending)| Limits {
            nominal,
            borrowing,
            lending,
        })
}

fn facts() -> impl Strategy<Value = NodeFacts> {
    let of = prop::sample::select(RESOURCES.to_vec());
    let beyond = prop::sample::select(vec![
        CrossQueueScope::Never,
        CrossQueueScope::LowerPriority,
        CrossQueueScope::Any,
    ]);
    (
        proptest::option::weighted(0.9, 0..3_usize),
        prop::collection::btree_map(of, quota(), 0..3),
        (any::<bool>(), beyond, any::<bool>()),
    )
        .prop_map(
            |(above, quotas, (takes_own, beyond, may_borrow))| NodeFacts {
                parent: above.map(|it| format!("cohort-{it}")),
                quotas: quotas.into_iter().collect(),
                preemption: QueuePreemption {
                    preempts_within_queue: takes_own,
                    cross_queue_scope: beyond,
                    may_borrow,
                },
                ..NodeFacts::default()
            },
        )
}

proptest! {
    /// The cached summary equals the computed one, also after a change, and for facts borrowed from an object.
    #[test]
    fn cached_summary_matches_computed_tree(
        cohorts in prop::collection::vec(facts(), 3),
        queues in prop::collection::vec(facts(), 1..6),
        later in facts(),
    ) {
        let mut tree = Tree::default();
        let named = |kind: &str, all: Vec<NodeFacts>| -> Vec<(String, Arc<NodeFacts>)> {
            let all = all.into_iter().enumerate();
            all.map(|(at, it)| (format!("{kind}-{at}"), Arc::new(it))).collect()
        };
        for (name, facts) in named("cohort", cohorts) {
            tree.insert_node(NodeKind::Cohort, &name, &facts);
        }
        let mut queues = named("queue", queues);
        for (name, facts) in &queues {
            tree.insert_node(NodeKind::Queue, name, facts);
        }
        agree(&tree, &queues)?;
        let (name, before) = queues.swap_remove(0);
        tree.remove_node(NodeKind::Queue, &name, &before);
        queues.push((name, Arc::new(later)));
        let (name, facts) = queues.last().unwrap();
        tree.insert_node(NodeKind::Queue, name, facts);
        agree(&tree, &queues)?;
    }
}

/// The view of each queue equals the whole tree: with its stored facts, with those of another queue, which may have
/// another parent, and as a new queue.
fn agree(tree: &Tree, queues: &[(String, Arc<NodeFacts>)]) -> Result<(), TestCaseError> {
    for (name, stored) in queues {
        let known = SubjectFacts::Stored(stored);
        let is_in_cohort = stored.parent.is_some();
        agree_on(tree, name, known, is_in_cohort)?;
        for (other, facts) in queues {
            let groups = groups(facts);
            let object = SubjectFacts::Object(ObjectFacts {
                parent: facts.parent.as_deref(),
                preemption: facts.preemption,
                groups: &groups,
            });
            let in_place = facts.parent.is_some() && facts.parent == stored.parent;
            agree_on(tree, name, object, in_place)?;
            agree_on(
                tree,
                &format!("{other}-new"),
                object,
                facts.parent.is_some(),
            )?;
        }
    }
    Ok(())
}

/// The resource groups of an object with these quotas.
fn groups(facts: &NodeFacts) -> Vec<ResourceGroup> {
    let flavor = |((flavor, resource), limits): (FlavorResource<'_>, &Limits)| FlavorQuotas {
        name: flavor.to_owned(),
        resources: vec![ResourceQuota {
            name: resource.to_owned(),
            nominal_quota: limits.nominal,
            borrowing_limit: limits.borrowing,
            lending_limit: limits.lending,
        }],
    };
    let group = ResourceGroup {
        flavors: facts.quotas.iter().map(flavor).collect(),
        ..ResourceGroup::default()
    };
    vec![group]
}

fn agree_on(
    tree: &Tree,
    name: &str,
    facts: SubjectFacts<'_>,
    must_be_summarized: bool,
) -> Result<(), TestCaseError> {
    let whole = HypotheticalTree::for_node(tree, NodeKind::Queue, name, facts);
    let view = QueueView::for_node(tree, NodeKind::Queue, name, facts);
    prop_assert_eq!(view.is_some(), whole.is_some());
    let (Some(view), Some(whole)) = (view, whole) else {
        return Ok(());
    };
    let is_summarized = matches!(view, QueueView::Summarized(_));
    prop_assert!(is_summarized || !must_be_summarized);
    prop_assert_eq!(view.loop_verdict(RULES), whole.loop_verdict(RULES));
    for of in RESOURCES {
        if let Some((_, limits)) = facts.quotas().find(|(it, _)| *it == of) {
            let most = whole.totals(of).and_then(|it| it.max_borrowable());
            prop_assert_eq!(view.max_borrowable(of, &limits), most, "{} {:?}", name, of);
        }
        let has_borrower = whole.has_borrower(of);
        prop_assert_eq!(view.has_borrower(of), has_borrower, "{} {:?}", name, of);
    }
    Ok(())
}
