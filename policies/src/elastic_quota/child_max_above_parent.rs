#![doc = include_str!("child_max_above_parent.md")]

use super::tree;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, ROOT_QUOTA, ResourceQuantities};
use lockkeeper_api::quantity::Quantity;

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ022",
    name: "child-max-above-parent",
    since: "0.1.0",
    action: Action::Warn,
    covers: &["eq-no-max-hierarchy-rule"],
    layers: &[Layer::Webhook],
    doc: include_str!("child_max_above_parent.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    if quota.name() == ROOT_QUOTA {
        return;
    }
    let none = ResourceQuantities::new();
    let own = quota.spec.max.as_ref().unwrap_or(&none);
    if let Some(parent) = tree::parent(quota, context) {
        for (resource, amount, limit) in larger(own, &parent.max) {
            let name = quoted(quota.parent());
            let detail = format!(
                "can never be reached; must be at most the max of its parent {name}, which is \
                 {limit}"
            );
            out.invalid(tree::max(resource), amount, detail);
        }
    }
    for (name, child) in tree::children(quota, context) {
        if out.is_full() {
            return;
        }
        for (resource, amount, limit) in larger(&child.max, own) {
            let name = quoted(name);
            let detail = format!(
                "quota {name} below it has a max of {amount}, which can then never be \
                 reached; must be at least that"
            );
            out.invalid(tree::max(resource), limit, detail);
        }
    }
}

/// The resources of both lists whose first amount is larger. A resource without a max is unlimited.
fn larger<'a>(
    amounts: &'a ResourceQuantities,
    limits: &'a ResourceQuantities,
) -> impl Iterator<Item = (&'a str, Quantity, Quantity)> {
    let both = amounts.iter().filter_map(|(resource, amount)| {
        let limit = limits.get(resource)?;
        Some((resource.as_str(), *amount, *limit))
    });
    both.filter(|(_, amount, limit)| amount > limit)
}
