#![doc = include_str!("negative_quota.md")]

use crate::finding::Findings;
use crate::quota;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::config::Action;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ008",
    name: "negative-quota",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[
        "cq-nominal-quota-non-negative",
        "cq-borrowing-limit-non-negative",
        "cq-lending-limit-non-negative",
    ],
    layers: &[Layer::Webhook],
    doc: include_str!("negative_quota.md"),
    check: Check::Object(check),
};

fn check(queue: &ClusterQueue, out: &mut Findings) {
    quota::each(&queue.spec.resource_groups, out, |place, out| {
        let amounts = [
            ("nominalQuota", Some(place.quota.nominal_quota)),
            ("borrowingLimit", place.quota.borrowing_limit),
            ("lendingLimit", place.quota.lending_limit),
        ];
        for (name, amount) in amounts {
            match amount {
                Some(amount) if amount.is_negative() => {
                    out.invalid(place.field(name), amount, "must be 0 or more");
                }
                _ => {}
            }
        }
    });
}
