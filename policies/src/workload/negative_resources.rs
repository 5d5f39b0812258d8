#![doc = include_str!("negative_resources.md")]

use crate::finding::Findings;
use crate::pod_sets::{PodSets, visit_amounts};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::quantity::Quantity;

/// Kueue's feature gate for this rule.
const GATE: &str = "WorkloadValidateResourcesAreNonNegative";

pub(crate) const fn rule<T: PodSets>() -> Rule<T> {
    Rule {
        id: "WL010",
        name: "negative-resources",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["wl-resources-non-negative"],
        layers: &[Layer::Webhook],
        doc: include_str!("negative_resources.md"),
        check: Check::Context(check),
    }
}

fn check<T: PodSets>(workload: &T, context: &Context<'_>, out: &mut Findings) {
    if !T::is_gate_enabled(GATE, context.settings) {
        return;
    }
    visit_amounts(workload, out, |amount, out| {
        let text = amount.quantity.0.as_str();
        let is_negative = text.parse::<Quantity>().is_ok_and(Quantity::is_negative);
        if is_negative {
            out.invalid(amount.path(), text, "must be 0 or more");
        }
    });
}
