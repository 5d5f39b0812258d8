#![doc = include_str!("lending_limit_above_quota.md")]

use crate::cohort_trees::hypothetical_tree::HypotheticalTree;
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CO005",
        name: "lending-limit-above-quota",
        since: "0.1.0",
        action: Action::Audit,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("lending_limit_above_quota.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QuotaFields>(cohort: &T, context: &Context<'_>, out: &mut Findings) {
    let tree = context.cluster.tree(T::PROJECT);
    if !cohort.is_in_cohort() || !tree.has_other_queue("") {
        return;
    }
    let facts = cohort.facts_from_tree(tree);
    let Some(whole) = HypotheticalTree::for_node(tree, T::NODE, cohort.name(), facts) else {
        return;
    };
    quota::visit_quotas(cohort.groups(), out, |place, out| {
        let Some(limit) = place.quota.lending_limit else {
            return;
        };
        match whole.totals(place.key()).map(|it| it.subtree_quota()) {
            Some(own) if limit > own => out.invalid(
                place.field("lendingLimit"),
                limit,
                format!("never reached; the cohort and all below it have {own} to lend"),
            ),
            _ => {}
        }
    });
}
