#![doc = include_str!("children_min_above_parent.md")]

use super::{amounts, tree};
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{
    ALLOW_FORCE_UPDATE, ElasticQuota, IS_ROOT, ResourceQuantities,
};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ017",
    name: "children-min-above-parent",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-children-min-sum-le-self", "eq-min-sum-le-parent"],
    layers: &[Layer::Webhook],
    doc: include_str!("children_min_above_parent.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    let is_forced = quota.label(ALLOW_FORCE_UPDATE) == "true";
    if tree::is_outside_tree(quota) || is_forced || quota.label(IS_ROOT) == "true" {
        return;
    }
    let own = quota.spec.min.clone().unwrap_or_default();
    // As in Koordinator (`checkMinQuotaValidate`), both sums that contain this min are checked.
    within_parent(quota, &own, context, out);

    let children = tree::children(quota, context);
    if children.is_empty() {
        return;
    }
    let below = amounts::total(children.iter().map(|(_, child)| &child.min));
    for excess in amounts::excesses(&below, &own) {
        let detail = format!(
            "the quotas below it have a min of {} together; must be at least that",
            excess.amount
        );
        out.invalid(tree::min(excess.resource), excess.limit, detail);
    }
}

fn within_parent(
    quota: &ElasticQuota,
    own: &ResourceQuantities,
    context: &Context<'_>,
    out: &mut Findings,
) {
    let Some(parent) = tree::parent(quota, context) else {
        return;
    };
    let siblings = tree::siblings(quota, context);
    let others = amounts::total(siblings.iter().map(|(_, sibling)| &sibling.min));
    let all = amounts::total([&others, own]);
    for excess in amounts::excesses(&all, &parent.min) {
        let detail = format!(
            "with {} of the other quotas below {} the sum is {}; it must be at most that quota's min \
             of {}",
            amounts::amount_for(&others, excess.resource),
            quoted(quota.parent()),
            excess.amount,
            excess.limit,
        );
        out.invalid(
            tree::min(excess.resource),
            amounts::amount_for(own, excess.resource),
            detail,
        );
    }
}
