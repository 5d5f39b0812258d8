#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use super::*;
use crate::cohort_trees::{Limits, NodeFacts, ObjectFacts};
use crate::preemption_loops::{CrossQueueScope, QueuePreemption};
use proptest::prelude::*;

const RULES: PreemptionRules = PreemptionRules {
    is_fair: true,
    is_damped: false,
};

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
    let of = prop::sample::select(vec![("spot", "cpu"), ("spot", "memory"), ("large", "cpu")]);
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

fn agree(tree: &Tree, queues: &[(String, Arc<NodeFacts>)]) -> Result<(), TestCaseError> {
    for (name, facts) in queues {
        let quotas = facts.quotas.iter().map(|(of, limits)| (of, *limits));
        let object = SubjectFacts::Object(ObjectFacts {
            parent: facts.parent.as_deref(),
            quotas: quotas.collect(),
            preemption: facts.preemption,
        });
        let whole = QueueView::for_node(tree, NodeKind::Queue, name, &object);
        let stored = SubjectFacts::Stored(facts);
        let known = QueueView::for_node(tree, NodeKind::Queue, name, &stored);
        prop_assert_eq!(known.is_some(), whole.is_some());
        let (Some(known), Some(whole)) = (known, whole) else {
            continue;
        };
        prop_assert!(matches!(whole, QueueView::Computed(_)));
        let is_kept = matches!(known, QueueView::Cached(..));
        prop_assert_eq!(is_kept, facts.parent.is_some());
        prop_assert_eq!(known.loop_verdict(RULES), whole.loop_verdict(RULES));
        for (of, _) in facts.quotas.iter() {
            prop_assert_eq!(
                known.max_borrowable(of),
                whole.max_borrowable(of),
                "{} {:?}",
                name,
                of
            );
            prop_assert_eq!(
                known.has_borrower(of),
                whole.has_borrower(of),
                "{} {:?}",
                name,
                of
            );
        }
    }
    Ok(())
}
