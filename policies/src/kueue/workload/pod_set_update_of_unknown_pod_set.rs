#![doc = include_str!("pod_set_update_of_unknown_pod_set.md")]

use super::quota_status::pod_set_names;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{PodSetUpdate, Workload};

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL012",
    name: "pod-set-update-of-unknown-pod-set",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-podset-updates-known"],
    layers: &[Layer::Webhook],
    doc: include_str!("pod_set_update_of_unknown_pod_set.md"),
    check: Check::Object(check),
};

fn check(workload: &Workload, out: &mut Findings) {
    let known = pod_set_names(workload);
    let accepted: Vec<&str> = known.iter().copied().collect();
    visit_updates(workload, |update, place| {
        if !known.contains(update.name.as_str()) && !out.is_full() {
            out.not_supported(place().field("name"), &update.name, &accepted);
        }
    });
}

/// Visits what each admission check changes of each pod set.
pub(super) fn visit_updates(
    workload: &Workload,
    mut visit: impl FnMut(&PodSetUpdate, &dyn Fn() -> FieldPath),
) {
    for (check_position, check) in workload.status.admission_checks.iter().enumerate() {
        for (position, update) in check.pod_set_updates.iter().enumerate() {
            visit(update, &|| {
                FieldPath::new("status.admissionChecks")
                    .item(check_position, &check.name)
                    .field("podSetUpdates")
                    .item(position, &update.name)
            });
        }
    }
}
