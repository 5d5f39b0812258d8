#![doc = include_str!("strict_fifo_blocked_forever.md")]

use crate::finding::Findings;
use crate::quota::QueueFields;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ019",
        name: "strict-fifo-blocked-forever",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("strict_fifo_blocked_forever.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: QueueFields>(queue: &T, context: &Context<'_>, out: &mut Findings) {
    if queue.is_strict_fifo() && context.settings.requeues_at_head_forever() {
        out.invalid(
            FieldPath::new("spec.queueingStrategy"),
            "StrictFIFO",
            "a workload whose pods never become ready blocks it forever, because evicted workloads \
             return to the head (requeuingStrategy.timestamp is Creation); use BestEffortFIFO, or set \
             timestamp to Eviction or a backoff limit",
        );
    }
}
