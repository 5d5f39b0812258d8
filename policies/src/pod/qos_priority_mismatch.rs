#![doc = include_str!("qos_priority_mismatch.md")]

use super::qos;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::QOS_CLASS;

/// The priority classes that are invalid with a `QoS` class, and the valid ones; empty means no class.
const MISMATCHES: [(&str, &[&str], &str); 2] = [
    (
        "BE",
        &["", "koord-prod"],
        "koord-mid, koord-batch or koord-free",
    ),
    (
        "LSR",
        &["", "koord-mid", "koord-batch", "koord-free"],
        "koord-prod",
    ),
];

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO008",
    name: "koordinator-qos-priority-mismatch",
    since: "0.1.0",
    action: Action::Off,
    covers: &["kpod-qos-priority-combination"],
    layers: &[Layer::Webhook],
    doc: include_str!("qos_priority_mismatch.md"),
    check: Check::Object(check),
};

fn check(pod: &Pod, out: &mut Findings) {
    let class = qos::class(pod);
    let priority = qos::priority_class(pod);
    for (qos, mismatches, accepted) in MISMATCHES {
        if qos == class && mismatches.contains(&priority) {
            let seen = match priority {
                "" => "without a Koordinator priority class".to_owned(),
                priority => format!("of {priority}"),
            };
            let detail = format!("does not go with a pod {seen}; it goes with {accepted}");
            out.invalid(super::label(QOS_CLASS), qos, detail);
        }
    }
}
