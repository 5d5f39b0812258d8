#![doc = include_str!("bad_shared_weight.md")]

use super::tree;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{self, ElasticQuota, SHARED_WEIGHT};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ002",
    name: "bad-shared-weight",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-shared-weight-non-negative", "eq-default-shared-weight"],
    layers: &[Layer::Webhook],
    doc: include_str!("bad_shared_weight.md"),
    check: Check::Object(check),
};

fn check(quota: &ElasticQuota, out: &mut Findings) {
    let text = quota.annotation(SHARED_WEIGHT);
    if text.is_empty() {
        return;
    }
    let field = tree::annotation(SHARED_WEIGHT);
    let Ok(weights) = koordinator::parse_quantities(text) else {
        let detail = r#"must be JSON with an amount for each resource, as in {"cpu":"10"}"#;
        out.invalid(field, text, detail);
        return;
    };
    for (resource, weight) in &weights {
        if weight.is_negative() {
            out.invalid(field.clone().key(&**resource), weight, "must be 0 or more");
        }
    }
}
