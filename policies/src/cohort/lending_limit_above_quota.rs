#![doc = include_str!("lending_limit_above_quota.md")]

use crate::finding::Findings;
use crate::quota;
use crate::quota::HasQuota;
use crate::rule::{Check, Context, Layer, Rule};
use crate::trees::sums::Whole;
use lockkeeper_api::config::Action;

pub(crate) const fn rule<T: HasQuota>() -> Rule<T> {
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

fn check<T: HasQuota>(cohort: &T, context: &Context<'_>, out: &mut Findings) {
    let tree = context.world.tree(T::FAMILY);
    if !cohort.is_in_cohort() || !tree.has_queue_besides("") {
        return;
    }
    let facts = cohort.facts_in(tree);
    let Some(whole) = Whole::of(tree, T::NODE, cohort.name(), &facts) else {
        return;
    };
    quota::each(cohort.groups(), out, |place, out| {
        let Some(limit) = place.quota.lending_limit else {
            return;
        };
        match whole.sums(place.key()).map(|it| it.own()) {
            Some(own) if limit > own => out.invalid(
                place.field("lendingLimit"),
                limit,
                format!("never reached; the cohort and all below it have {own} to lend"),
            ),
            _ => {}
        }
    });
}
