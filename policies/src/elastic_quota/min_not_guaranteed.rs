#![doc = include_str!("min_not_guaranteed.md")]

use super::{amounts, tree};
use crate::cluster_view::Lookup;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{
    ALLOW_FORCE_UPDATE, ElasticQuota, IS_ROOT, ResourceQuantities, TREE_ID,
};

/// Koordinator's feature gate; without it no amount is guaranteed.
const GUARANTEE: &str = "ElasticQuotaGuaranteeUsage";

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ018",
    name: "min-not-guaranteed",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-guaranteed-for-min"],
    layers: &[Layer::Webhook],
    doc: include_str!("min_not_guaranteed.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    let is_forced = quota.label(ALLOW_FORCE_UPDATE) == "true";
    if !context.settings.is_gate_enabled(GUARANTEE, false)
        || tree::is_outside_tree(quota)
        || is_forced
        || quota.label(IS_ROOT) == "true"
        || quota.label(TREE_ID).is_empty()
    {
        return;
    }
    let own = quota.spec.min.clone().unwrap_or_default();
    let guaranteed = quota.guaranteed();
    if amounts::excesses(&own, &guaranteed).is_empty() {
        return;
    }
    let Some(shortage) = shortage(quota, amounts::largest(&own, &guaranteed), context) else {
        return;
    };
    for excess in amounts::excesses(&shortage.wanted, &shortage.guaranteed) {
        let detail = format!(
            "quota {} at the top of the tree would have to guarantee {}, and guarantees {}; lower the \
             min, or add to that quota first",
            quoted(&shortage.quota),
            excess.amount,
            excess.limit,
        );
        out.invalid(
            tree::min(excess.resource),
            amounts::amount_for(&own, excess.resource),
            detail,
        );
    }
}

/// The amounts that the topmost quota would have to guarantee, and the amounts that it guarantees.
struct Shortage {
    quota: String,
    wanted: ResourceQuantities,
    guaranteed: ResourceQuantities,
}

/// Walks up the tree until a quota guarantees enough for all its descendants (Koordinator, `checkParentGuaranteed`).
/// `None` if there is such a quota, or if a parent is unknown.
fn shortage(
    quota: &ElasticQuota,
    wanted: ResourceQuantities,
    context: &Context<'_>,
) -> Option<Shortage> {
    let mut last = Shortage {
        quota: quota.name().to_owned(),
        wanted,
        guaranteed: quota.guaranteed(),
    };
    for (name, parent) in tree::ancestors(quota.parent(), context) {
        let Lookup::Found(parent) = parent else {
            return None;
        };
        let mut children = context.cluster.quota_children(&name);
        // The stored amount of this child is replaced by the wanted one.
        children.retain(|(child, _)| *child != last.quota);
        let others = children.iter().map(|(_, child)| &child.guaranteed);
        let all = amounts::total(others.chain([&last.wanted]));
        let wanted = amounts::largest(&parent.min, &all);
        if amounts::excesses(&wanted, &parent.guaranteed).is_empty() {
            return None;
        }
        last = Shortage {
            quota: name,
            wanted,
            guaranteed: parent.guaranteed.clone(),
        };
    }
    Some(last)
}
