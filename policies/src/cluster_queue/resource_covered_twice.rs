#![doc = include_str!("resource_covered_twice.md")]

use crate::finding::Findings;
use crate::quota;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::config::Action;
use std::collections::BTreeMap;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ005",
    name: "resource-covered-twice",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["cq-resource-unique-across-groups"],
    layers: &[Layer::Webhook],
    doc: include_str!("resource_covered_twice.md"),
    check: Check::Object(check),
};

fn check(queue: &ClusterQueue, out: &mut Findings) {
    let mut first = BTreeMap::new();
    for (group_index, group) in queue.spec.resource_groups.iter().enumerate() {
        for (position, name) in group.covered_resources.iter().enumerate() {
            if out.is_full() {
                return;
            }
            let Some(earlier) = first.get(name.as_str()) else {
                first.insert(name.as_str(), group_index);
                continue;
            };
            out.duplicate(
                quota::group(group_index, group)
                    .field("coveredResources")
                    .item(position, name),
                name,
                format!("spec.resourceGroups[{earlier}] covers it already; keep it in one group"),
            );
        }
    }
}
