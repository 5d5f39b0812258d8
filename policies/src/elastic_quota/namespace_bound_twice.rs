#![doc = include_str!("namespace_bound_twice.md")]

use super::tree;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, NAMESPACES};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ006",
    name: "namespace-bound-to-two-quotas",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-namespace-bound-once"],
    layers: &[Layer::Webhook],
    doc: include_str!("namespace_bound_twice.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    for (position, namespace) in quota.namespaces().iter().enumerate() {
        if let Some(other) = context.cluster.quota_bound_to(namespace, quota.name()) {
            let field = tree::annotation(NAMESPACES).item(position, namespace);
            let detail = format!(
                "quota {} already lists this namespace; remove it there first, or omit it here",
                quoted(other)
            );
            out.duplicate(field, namespace, detail);
        }
    }
}
