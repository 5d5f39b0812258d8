#![doc = include_str!("quota_of_children_repeated.md")]

use crate::cohort_trees::hypothetical_tree::HypotheticalTree;
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::quantity::Quantity;

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CO004",
        name: "quota-of-children-repeated",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("quota_of_children_repeated.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QuotaFields>(cohort: &T, context: &Context<'_>, out: &mut Findings) {
    let tree = context.cluster.tree(T::PROJECT);
    if tree.children(cohort.name()).next().is_none() {
        return;
    }
    let facts = cohort.facts_from_tree(tree);
    let Some(whole) = HypotheticalTree::for_node(tree, T::NODE, cohort.name(), facts) else {
        return;
    };
    let mut counted = facts.quotas().filter(|(_, it)| !it.nominal.is_zero());
    // One equal sum may be a coincidence; all of them are rarely one.
    if !counted.all(|(key, it)| is_sum(&whole.nominal_quotas_below(key), it.nominal)) {
        return;
    }
    quota::visit_quotas(cohort.groups(), out, |place, out| {
        let nominal = place.quota.nominal_quota;
        if nominal.is_zero() {
            return;
        }
        let count = whole.nominal_quotas_below(place.key()).len();
        out.invalid(
            place.field("nominalQuota"),
            nominal,
            format!(
                "is the sum of the {count} quotas below it and is added to them, so the capacity is counted twice; \
                 set 0 if the capacity is theirs"
            ),
        );
    });
}

/// Whether at least two parts have this sum.
fn is_sum(parts: &[Quantity], total: Quantity) -> bool {
    let mut parts = parts.iter();
    let sum = parts
        .clone()
        .try_fold(Quantity::ZERO, |sum, it| sum.checked_add(*it));
    parts.nth(1).is_some() && sum == Some(total)
}
