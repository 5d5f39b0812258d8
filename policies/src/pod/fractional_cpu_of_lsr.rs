#![doc = include_str!("fractional_cpu_of_lsr.md")]

use super::qos;
use crate::finding::Findings;
use crate::pod_requests;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

/// The nano units of a whole processor.
const NANO_PER_CPU: i128 = 1_000_000_000;

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO010",
    name: "fractional-cpu-of-lsr",
    since: "0.1.0",
    action: Action::Off,
    covers: &["kpod-lsr-integer-cpu"],
    layers: &[Layer::Webhook],
    doc: include_str!("fractional_cpu_of_lsr.md"),
    check: Check::Object(check),
};

fn check(pod: &Pod, out: &mut Findings) {
    let class = qos::class(pod);
    if !["LSR", "LSE"].contains(&class) {
        return;
    }
    let field = FieldPath::new("spec.containers");
    // The sum of the pod counts (Koordinator, `validateResources`), not that of each container.
    let cpu = pod_requests::pod_request(pod, "cpu");
    if cpu.is_zero() {
        let detail = format!(
            "a pod of class {class} gets processors of its own; its containers must request some cpu"
        );
        out.required(field, detail);
    } else if cpu.nano() % NANO_PER_CPU != 0 {
        let detail = format!(
            "is the cpu that the containers request; a pod of class {class} gets whole \
             processors, so it must be a whole number"
        );
        out.invalid(field, cpu, detail);
    }
}
