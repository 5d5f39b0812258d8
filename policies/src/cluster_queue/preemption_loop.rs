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
    let hunter = queue.queue_preemption();
    let is_peaceful =
        !hunter.preempts_within_queue && hunter.cross_queue_scope == CrossQueueScope::Never;
    if is_peaceful || rules.is_damped {
        // Nothing is left to be looked at, as for most queues.
        return;
    }
    let tree = context.cluster.tree(T::PROJECT);
    let facts = queue.facts_from_tree(tree);
    let hunter = facts.preemption;
    let Some(standing) = QueueView::for_node(tree, T::NODE, queue.name(), &facts) else {
        return;
    };
    if standing.loop_verdict(rules) == LoopVerdict::Unknown {
        let reach = match hunter.cross_queue_scope {
            CrossQueueScope::Any => "it preempts in other queues whatever the priority",
            CrossQueueScope::Never | CrossQueueScope::LowerPriority if hunter.may_borrow => {
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
