#![doc = include_str!("borrowing_limit_never_reached.md")]

use crate::cohort_trees::queue_summary::QueueView;
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ018",
        name: "borrowing-limit-never-reached",
        since: "0.1.0",
        action: Action::Audit,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("borrowing_limit_never_reached.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, context: &Context<'_>, out: &mut Findings) {
    let tree = context.cluster.tree(T::PROJECT);
    if !object.is_in_cohort() || !tree.has_other_queue(object.name()) {
        return;
    }
    let quotas = object.groups().iter().flat_map(|it| &it.flavors);
    let mut quotas = quotas.flat_map(|it| &it.resources);
    // Most queues have no limit, so the tree is not walked for them.
    if quotas.all(|it| it.borrowing_limit.is_none()) {
        return;
    }
    let facts = object.facts_from_tree(tree);
    let Some(view) = QueueView::for_node(tree, T::NODE, object.name(), facts) else {
        return;
    };
    quota::visit_quotas(object.groups(), out, |place, out| {
        let Some(limit) = place.quota.borrowing_limit else {
            return;
        };
        match view.max_borrowable(place.key(), &place.limits()) {
            Some(most) if limit > most => out.invalid(
                place.field("borrowingLimit"),
                limit,
                format!("never reached; the rest of the cohort can lend at most {most}"),
            ),
            _ => {}
        }
    });
}
