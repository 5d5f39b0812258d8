#![doc = include_str!("preemption_loop.md")]

use crate::cohort_trees::Project;
use crate::cohort_trees::queue_summary::QueueView;
use crate::finding::Findings;
use crate::preemption_loops::{CrossQueueScope, LoopVerdict, PreemptionRules, RULE};
use crate::quota::QueueFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::{Action, Algorithm};
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: RULE,
        name: "preemption-loop",
        since: "0.1.0",
        action: Action::Audit,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("preemption_loop.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QueueFields>(queue: &T, context: &Context<'_>, out: &mut Findings) {
    let rules = PreemptionRules {
        is_fair: context.settings.algorithm == Algorithm::FairSharing,
        is_damped: !context.settings.is_undamped && T::PROJECT == Project::Lockkeeper,
    };
    let preemption = queue.queue_preemption();
    let never_preempts =
        !preemption.preempts_within_queue && preemption.cross_queue_scope == CrossQueueScope::Never;
    if never_preempts || rules.is_damped {
        // Most queues return here, before the tree is read.
        return;
    }
    let tree = context.cluster.tree(T::PROJECT);
    // Facts shared with the tree select its cached summary (`QueueView::for_node`).
    let facts = queue.facts_from_tree(tree);
    let preemption = facts.preemption();
    let Some(view) = QueueView::for_node(tree, T::NODE, queue.name(), facts) else {
        return;
    };
    if view.loop_verdict(rules) == LoopVerdict::Unknown {
        let reach = match preemption.cross_queue_scope {
            CrossQueueScope::Any => "it preempts in other queues whatever the priority",
            CrossQueueScope::Never | CrossQueueScope::LowerPriority if preemption.may_borrow => {
                "it preempts and borrows"
            }
            CrossQueueScope::Never | CrossQueueScope::LowerPriority => {
                "others of its cohort preempt and borrow"
            }
        };
        out.invalid(
            FieldPath::new("spec.preemption"),
            reach,
            "the policies of its cohort do not rule out that workloads preempt each other without end",
        );
    }
}
