#![doc = include_str!("batch_resources_without_be.md")]

use super::qos;
use crate::finding::Findings;
use crate::pod_requests;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{BATCH_CPU, BATCH_MEMORY, QOS_CLASS};

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO009",
    name: "batch-resources-without-be",
    since: "0.1.0",
    action: Action::Off,
    covers: &["kpod-batch-resources-need-be"],
    layers: &[Layer::Webhook],
    doc: include_str!("batch_resources_without_be.md"),
    check: Check::Object(check),
};

fn check(pod: &Pod, out: &mut Findings) {
    if qos::class(pod) == "BE" {
        return;
    }
    for resource in [BATCH_CPU, BATCH_MEMORY] {
        let requested = pod_requests::pod_request(pod, resource);
        if !requested.is_zero() {
            let detail = format!(
                "the pod requests {requested} of {resource}, which is unused capacity of other pods; must be \"BE\""
            );
            out.required(super::label(QOS_CLASS), detail);
        }
    }
}
