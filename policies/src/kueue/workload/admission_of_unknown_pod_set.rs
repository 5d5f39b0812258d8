#![doc = include_str!("admission_of_unknown_pod_set.md")]

use super::quota_status::{has_quota_reserved, pod_set_names};
use crate::finding::{Findings, join_names};
use crate::rule::{Check, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::Workload;

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL005",
    name: "admission-of-unknown-pod-set",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-admission-podset-known"],
    layers: &[Layer::Webhook],
    doc: include_str!("admission_of_unknown_pod_set.md"),
    check: Check::Object(check),
};

fn check(workload: &Workload, out: &mut Findings) {
    let Some(admission) = &workload.status.admission else {
        return;
    };
    if !has_quota_reserved(workload) {
        return;
    }
    let known = pod_set_names(workload);
    for (position, assignment) in admission.pod_set_assignments.iter().enumerate() {
        if !known.contains(assignment.name.as_str()) && !out.is_full() {
            let list = FieldPath::new("status.admission.podSetAssignments");
            out.not_found(
                list.item(position, &assignment.name).field("name"),
                &assignment.name,
                format!(
                    "the workload has the pod sets {}",
                    join_names(known.iter().copied())
                ),
            );
        }
    }
}
