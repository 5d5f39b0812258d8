#![doc = include_str!("reserve_pod_annotation.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::RESERVE_POD;

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO011",
    name: "reserve-pod-annotation",
    since: "0.1.0",
    action: Action::Off,
    covers: &["kpod-reserve-annotation-forbidden"],
    layers: &[Layer::Webhook],
    doc: include_str!("reserve_pod_annotation.md"),
    check: Check::Object(check),
};

fn check(pod: &Pod, out: &mut Findings) {
    let annotations = pod.metadata.annotations.as_ref();
    if annotations.is_some_and(|it| it.contains_key(RESERVE_POD)) {
        out.forbidden(
            FieldPath::new("metadata.annotations").key(RESERVE_POD),
            "only Koordinator's scheduler marks a pod as a reservation; remove it",
        );
    }
}
