#![doc = include_str!("cluster_queue_changed.md")]

use crate::cel::CelRule;
use crate::finding::{Findings, quoted};
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::LocalQueue;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    CelRule::new(
    "spec.clusterQueue",
    "self == oldSelf",
    "field is immutable; make another LocalQueue",
)
.message_expression("'\"' + self + '\": field is immutable; keep \"' + oldSelf + '\", or make another LocalQueue for it'")
}

pub(super) const RULE: Rule<LocalQueue> = Rule {
    id: "LQ002",
    name: "cluster-queue-changed",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["lq-cluster-queue-immutable"],
    layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
    doc: include_str!("cluster_queue_changed.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, LocalQueue>, _: &Context<'_>, out: &mut Findings) {
    let before = &change.old.spec.cluster_queue;
    let after = &change.new.spec.cluster_queue;
    if before != after {
        out.invalid(
            FieldPath::new("spec.clusterQueue"),
            after,
            format!(
                "field is immutable; keep {}, or make another LocalQueue for it",
                quoted(before)
            ),
        );
    }
}
