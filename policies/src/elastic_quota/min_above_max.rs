#![doc = include_str!("min_above_max.md")]

use super::tree;
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::ElasticQuota;

fn cel_rule() -> CelRule {
    CelRule::new(
    "spec",
    "!has(self.min) || self.min.all(it, has(self.max) && it in self.max && (!isQuantity(string(self.min[it])) \
     || !isQuantity(string(self.max[it])) \
     || quantity(string(self.min[it])).compareTo(quantity(string(self.max[it]))) <= 0))",
    "each min needs a spec.max of the resource, and must be at most that",
)
.field_path(".min")
.unchanged_when(
    "has(oldSelf.min) && self.min.all(it, (has(self.max) && it in self.max \
     && quantity(string(self.min[it])).compareTo(quantity(string(self.max[it]))) <= 0) \
     || (it in oldSelf.min && quantity(string(self.min[it])).compareTo(quantity(string(oldSelf.min[it]))) == 0 \
     && (has(self.max) && it in self.max) == (has(oldSelf.max) && it in oldSelf.max) \
     && (!has(self.max) || !(it in self.max) \
     || quantity(string(self.max[it])).compareTo(quantity(string(oldSelf.max[it]))) == 0)))",
)
}

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ003",
    name: "elastic-quota-min-above-max",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-min-keys-in-max", "eq-min-le-max"],
    layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
    doc: include_str!("min_above_max.md"),
    check: Check::Object(check),
};

fn check(quota: &ElasticQuota, out: &mut Findings) {
    let max = quota.spec.max.as_ref();
    for (resource, min) in quota.spec.min.iter().flatten() {
        match max.and_then(|max| max.get(resource)) {
            None => out.invalid(
                tree::min(resource),
                min,
                "spec.max lacks this resource; add at least this amount, or remove the min",
            ),
            Some(max) if min > max => {
                let detail = format!("must be at most spec.max, which is {max}");
                out.invalid(tree::min(resource), min, detail);
            }
            Some(_) => {}
        }
    }
}
