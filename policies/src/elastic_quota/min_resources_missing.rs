#![doc = include_str!("min_resources_missing.md")]

use super::tree;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, ResourceQuantities};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ016",
    name: "min-resource-missing-in-parent",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-min-keys-in-parent"],
    layers: &[Layer::Webhook],
    doc: include_str!("min_resources_missing.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    if tree::is_outside_tree(quota) {
        return;
    }
    let none = ResourceQuantities::new();
    let own = quota.spec.min.as_ref().unwrap_or(&none);
    if let Some(parent) = tree::parent(quota, context) {
        // In one direction only, unlike for max: a child may lack a min that its parent has.
        for resource in own.keys().filter(|it| !parent.min.contains_key(*it)) {
            let name = quoted(quota.parent());
            let detail = format!(
                "its parent {name} has no min of this resource; give it one, or remove this"
            );
            out.forbidden(tree::min(resource), detail);
        }
    }
    for (name, child) in tree::children(quota, context) {
        if out.is_full() {
            return;
        }
        for resource in child.min.keys().filter(|it| !own.contains_key(*it)) {
            let name = quoted(name);
            let detail =
                format!("quota {name} below it has a min of this resource; give one here as well");
            out.required(tree::min(resource), detail);
        }
    }
}
