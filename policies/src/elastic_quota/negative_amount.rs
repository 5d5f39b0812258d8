#![doc = include_str!("negative_amount.md")]

use super::tree;
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::ElasticQuota;

fn max() -> CelRule {
    CelRule::new(
    "spec",
    "!has(self.max) || self.max.all(it, !isQuantity(string(self.max[it])) || quantity(string(self.max[it])).compareTo(quantity('0')) >= 0)",
    "must be 0 or more",
)
.field_path(".max")
.unchanged_when(
    "has(oldSelf.max) && self.max.all(it, quantity(string(self.max[it])).compareTo(quantity('0')) >= 0 || (it in oldSelf.max \
     && quantity(string(self.max[it])).compareTo(quantity(string(oldSelf.max[it]))) == 0))",
)
}
fn min() -> CelRule {
    CelRule::new(
    "spec",
    "!has(self.min) || self.min.all(it, !isQuantity(string(self.min[it])) || quantity(string(self.min[it])).compareTo(quantity('0')) >= 0)",
    "must be 0 or more",
)
.field_path(".min")
.unchanged_when(
    "has(oldSelf.min) && self.min.all(it, quantity(string(self.min[it])).compareTo(quantity('0')) >= 0 || (it in oldSelf.min \
     && quantity(string(self.min[it])).compareTo(quantity(string(oldSelf.min[it]))) == 0))",
)
}

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ001",
    name: "negative-elastic-quota",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-max-non-negative", "eq-min-non-negative"],
    layers: &[Layer::Webhook, Layer::Policy(|| vec![max(), min()])],
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
