#![doc = include_str!("invalid_template_metadata.md")]

use crate::finding::Findings;
use crate::name_validation;
use crate::pod_sets::PodSets;
use crate::rule::{Check, Context, Layer, Rule};

/// Kueue's feature gate for this rule.
const GATE: &str = "WorkloadValidationForPodSetMetadata";

pub(crate) const fn rule<T: PodSets>() -> Rule<T> {
    Rule {
        id: "WL008",
        name: "invalid-template-metadata",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["wl-podset-labels-valid", "wl-podset-annotations-valid"],
        layers: &[Layer::Webhook],
        doc: include_str!("invalid_template_metadata.md"),
        check: Check::Context(check),
    }
}

fn check<T: PodSets>(workload: &T, context: &Context<'_>, out: &mut Findings) {
    if !T::is_gate_enabled(GATE, context.settings) {
        return;
    }
    for pod_set in workload.pod_sets() {
        let Some(metadata) = &pod_set.template.metadata else {
            continue;
        };
        let field = |name| pod_set.path().field("template.metadata").field(name);
        if let Some(map) = &metadata.labels {
            name_validation::labels(map, || field("labels"), out);
        }
        if let Some(map) = &metadata.annotations {
            name_validation::annotations(map, || field("annotations"), out);
        }
    }
}
