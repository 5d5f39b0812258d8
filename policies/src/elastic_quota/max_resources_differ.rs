#![doc = include_str!("max_resources_differ.md")]

use super::tree;
use crate::cluster_view::NamedQuota;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, ResourceQuantities};

/// Koordinator's feature gate; if it is on, a quota may have fewer resources than its parent.
const FEWER_ALLOWED: &str = "ElasticQuotaEnableUpdateResourceKey";

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ015",
    name: "max-resources-differ-in-tree",
    since: "0.1.0",
    action: Action::Off,
    covers: &[
        "eq-max-keys-same-as-parent-children",
        "eq-top-level-leaf-skips",
    ],
    layers: &[Layer::Webhook],
    doc: include_str!("max_resources_differ.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    if tree::is_outside_tree(quota) {
        return;
    }
    let fewer_allowed = context.settings.is_gate_enabled(FEWER_ALLOWED, false);
    let none = ResourceQuantities::new();
    let own = quota.spec.max.as_ref().unwrap_or(&none);
    if let Some(parent) = tree::parent(quota, context) {
        let name = quoted(quota.parent());
        for resource in missing(own, &parent.max) {
            let detail = format!(
                "its parent {name} has no max of this resource; give it one, or remove this"
            );
            out.forbidden(tree::max(resource), detail);
        }
        for resource in missing(&parent.max, own).filter(|_| !fewer_allowed) {
            let detail =
                format!("its parent {name} has a max of this resource; give one here as well");
            out.required(tree::max(resource), detail);
        }
    }
    for (name, child) in tree::children(quota, context) {
        if out.is_full() {
            return;
        }
        against_child(own, (name, child), fewer_allowed, out);
    }
}

fn against_child(
    own: &ResourceQuantities,
    child: NamedQuota<'_>,
    fewer_allowed: bool,
    out: &mut Findings,
) {
    let (name, child) = (quoted(child.0), child.1);
    for resource in missing(&child.max, own) {
        let detail =
            format!("quota {name} below it has a max of this resource; give one here as well");
        out.required(tree::max(resource), detail);
    }
    for resource in missing(own, &child.max).filter(|_| !fewer_allowed) {
        let detail =
            format!("quota {name} below it has no max of this resource; give it one first");
        out.forbidden(tree::max(resource), detail);
    }
}

/// The resources of `amounts` that `others` lacks.
fn missing<'a>(
    amounts: &'a ResourceQuantities,
    others: &'a ResourceQuantities,
) -> impl Iterator<Item = &'a str> {
    let resources = amounts.keys().map(String::as_str);
    resources.filter(|resource| !others.contains_key(*resource))
}
