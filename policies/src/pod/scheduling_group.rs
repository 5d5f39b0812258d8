#![doc = include_str!("scheduling_group.md")]

use crate::finding::Findings;
use crate::name_validation::dns_subdomain;
use crate::rule::{Check, Context, Rule};
use crate::scheduling::GENERIC_WORKLOAD;
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<Pod> = Rule::mirrored(
    "PO014",
    "scheduling-group-malformed",
    &["pod-scheduling-group"],
    include_str!("scheduling_group.md"),
    Check::Create(check),
);

fn check(pod: &Pod, context: &Context<'_>, out: &mut Findings) {
    let spec = pod.spec.as_ref();
    let Some(group) = spec.and_then(|spec| spec.scheduling_group.as_ref()) else {
        return;
    };
    // Without the gate the API server drops the field before validation.
    if !context.settings.is_gate_enabled(GENERIC_WORKLOAD, false) {
        return;
    }
    let field = FieldPath::new("spec.schedulingGroup.podGroupName");
    match &group.pod_group_name {
        None => out.invalid(field, "", "name the PodGroup that the pod belongs to"),
        Some(name) => {
            for fault in dns_subdomain(name) {
                out.invalid(field.clone(), name, fault);
            }
        }
    }
}
