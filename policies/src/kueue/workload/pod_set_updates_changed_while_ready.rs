#![doc = include_str!("pod_set_updates_changed_while_ready.md")]

use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use crate::semantic_equality;
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{AdmissionCheckState, Workload};
use std::collections::BTreeMap;

/// The state of a check that lets the workload start.
const READY: &str = "Ready";

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL014",
    name: "pod-set-updates-changed-while-ready",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-podset-updates-immutable-ready"],
    layers: &[Layer::Webhook],
    doc: include_str!("pod_set_updates_changed_while_ready.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    let [before, after] = [change.old, change.new].map(|it| &it.status.admission_checks);
    let by_name = after.iter().map(|it| (it.name.as_str(), it));
    let after: BTreeMap<&str, &AdmissionCheckState> = by_name.collect();
    // As in Kueue, the position is that of the stored list.
    for (position, old) in before.iter().enumerate() {
        let Some(new) = after.get(old.name.as_str()) else {
            continue;
        };
        let is_ready = old.state == READY && new.state == READY;
        if is_ready
            && !semantic_equality::updates_equal(&old.pod_set_updates, &new.pod_set_updates)
            && !out.is_full()
        {
            let checks = FieldPath::new("status.admissionChecks");
            out.invalid(
                checks.item(position, &old.name).field("podSetUpdates"),
                &old.name,
                "field is immutable while this check is Ready; keep it, or change the state first",
            );
        }
    }
}
