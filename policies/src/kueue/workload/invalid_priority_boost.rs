#![doc = include_str!("invalid_priority_boost.md")]

use super::quota_status::annotation;
use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::Workload;

/// The annotation.
const BOOST: &str = "kueue.x-k8s.io/priority-boost";

/// Kueue's feature gate for this rule.
const GATE: &str = "PriorityBoost";

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL018",
    name: "invalid-priority-boost",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-priority-boost-int32"],
    layers: &[Layer::Webhook],
    doc: include_str!("invalid_priority_boost.md"),
    check: Check::Context(check),
};

fn check(workload: &Workload, context: &Context<'_>, out: &mut Findings) {
    if !context.settings.is_gate_enabled(GATE, false) {
        return;
    }
    if let Some(value) = annotation(workload, BOOST)
        && value.parse::<i32>().is_err()
    {
        out.invalid(
            FieldPath::new("metadata.annotations").key(BOOST),
            value,
            "must be a whole number of 32 bits, such as 10 or -5; write 0, or leave it out, for none",
        );
    }
}
