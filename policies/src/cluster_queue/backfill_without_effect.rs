#![doc = include_str!("backfill_without_effect.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::cluster_queue::{BackfillPolicy, QueueingStrategy};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ033",
    name: "backfill-without-effect",
    since: "0.1.0",
    action: Action::Warn,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("backfill_without_effect.md"),
    check: Check::Object(check),
};

fn check(queue: &ClusterQueue, out: &mut Findings) {
    let spec = &queue.spec;
    let policy = spec.backfill.and_then(|it| it.policy).unwrap_or_default();
    let name = match policy {
        BackfillPolicy::None => return,
        BackfillPolicy::Easy => "Easy",
        BackfillPolicy::Conservative => "Conservative",
    };
    let field = || FieldPath::new("spec.backfill.policy");
    if spec.queueing_strategy.unwrap_or_default() != QueueingStrategy::StrictFIFO {
        out.invalid(
            field(),
            name,
            "has no effect with queueingStrategy BestEffortFIFO, where every workload may pass the head; set \
             queueingStrategy to StrictFIFO, or remove backfill",
        );
    }
    if spec.elastic.is_some() {
        out.invalid(
            field(),
            name,
            "has no effect in an elastic ClusterQueue; remove elastic or backfill",
        );
    }
}
