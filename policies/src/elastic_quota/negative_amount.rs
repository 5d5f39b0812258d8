#![doc = include_str!("negative_amount.md")]

use super::tree;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::ElasticQuota;

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ001",
    name: "negative-elastic-quota",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-max-non-negative", "eq-min-non-negative"],
    layers: &[Layer::Webhook],
    doc: include_str!("negative_amount.md"),
    check: Check::Object(check),
};

fn check(quota: &ElasticQuota, out: &mut Findings) {
    let spec = &quota.spec;
    for (resource, amount) in spec.max.iter().flatten() {
        if amount.is_negative() {
            out.invalid(tree::max(resource), amount, "must be 0 or more");
        }
    }
    for (resource, amount) in spec.min.iter().flatten() {
        if amount.is_negative() {
            out.invalid(tree::min(resource), amount, "must be 0 or more");
        }
    }
}
