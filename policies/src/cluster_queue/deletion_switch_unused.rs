#![doc = include_str!("deletion_switch_unused.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ031",
    name: "deletion-switch-unused",
    since: "0.1.0",
    action: Action::Warn,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("deletion_switch_unused.md"),
    check: Check::Object(check),
};

fn check(queue: &ClusterQueue, out: &mut Findings) {
    let elastic = queue.spec.elastic.as_ref();
    if elastic.and_then(|it| it.pod_should_be_deleted_when_preempted) == Some(true) {
        out.invalid(
            FieldPath::new("spec.elastic.podShouldBeDeletedWhenPreempted"),
            true,
            "has no effect: a preempted job is suspended, which deletes its pods; remove it",
        );
    }
}
