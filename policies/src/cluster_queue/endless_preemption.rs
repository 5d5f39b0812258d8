#![doc = include_str!("endless_preemption.md")]

use crate::endless::{Beyond, RULE, Rules, Verdict};
use crate::finding::Findings;
use crate::quota::IsQueue;
use crate::rule::{Check, Context, Layer, Rule};
use crate::trees::Family;
use crate::trees::standing::Standing;
use lockkeeper_api::config::{Action, Algorithm};
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: IsQueue>() -> Rule<T> {
    Rule {
        id: RULE,
        name: "endless-preemption",
        since: "0.1.0",
        action: Action::Audit,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("endless_preemption.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: IsQueue>(queue: &T, context: &Context<'_>, out: &mut Findings) {
    let rules = Rules {
        is_fair: context.settings.algorithm == Algorithm::FairSharing,
        is_damped: !context.settings.is_undamped && T::FAMILY == Family::Own,
    };
    let hunter = queue.hunter();
    let is_peaceful = !hunter.takes_own && hunter.beyond == Beyond::Nobody;
    if is_peaceful || rules.is_damped {
        // Nothing is left to be looked at, as for most queues.
        return;
    }
    let tree = context.world.tree(T::FAMILY);
    let facts = queue.facts_in(tree);
    let hunter = facts.hunter;
    let Some(standing) = Standing::of(tree, T::NODE, queue.name(), &facts) else {
        return;
    };
    if standing.verdict(rules) == Verdict::Open {
        let reach = match hunter.beyond {
            Beyond::Anybody => "it preempts in other queues whatever the priority",
            Beyond::Nobody | Beyond::Lower if hunter.may_borrow => "it preempts and borrows",
            Beyond::Nobody | Beyond::Lower => "others of its cohort preempt and borrow",
        };
        out.invalid(
            FieldPath::new("spec.preemption"),
            reach,
            "the policies of its cohort do not rule out that workloads preempt each other without end",
        );
    }
}
