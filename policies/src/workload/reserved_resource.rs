#![doc = include_str!("reserved_resource.md")]

use crate::finding::Findings;
use crate::pod_sets::{PodSets, visit_amounts};
use crate::rule::{Check, Layer, Rule};

/// The resource that counts pods.
const PODS: &str = "pods";

pub(crate) const fn rule<T: PodSets>() -> Rule<T> {
    Rule {
        id: "WL009",
        name: "reserved-resource",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["wl-no-pods-resource"],
        layers: &[Layer::Webhook],
        doc: include_str!("reserved_resource.md"),
        check: Check::Object(check),
    }
}

fn check<T: PodSets>(workload: &T, out: &mut Findings) {
    visit_amounts(workload, out, |amount, out| {
        if amount.resource == PODS {
            out.invalid(
                amount.path(),
                PODS,
                "is reserved, as pods are counted for quota without it; remove it",
            );
        }
    });
}
