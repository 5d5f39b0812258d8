#![doc = include_str!("lending_limit_above_nominal.md")]

use crate::finding::Findings;
use crate::quota;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::config::Action;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ007",
    name: "lending-limit-above-nominal",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["cq-lending-limit-le-nominal"],
    layers: &[Layer::Webhook],
    doc: include_str!("lending_limit_above_nominal.md"),
    check: Check::Object(check),
};

fn check(queue: &ClusterQueue, out: &mut Findings) {
    quota::each(&queue.spec.resource_groups, out, |place, out| {
        let nominal = place.quota.nominal_quota;
        match place.quota.lending_limit {
            Some(limit) if limit > nominal => out.invalid(
                place.field("lendingLimit"),
                limit,
                format!("must be at most the nominalQuota, which is {nominal}"),
            ),
            _ => {}
        }
    });
}
