//! Reclaimable pods that are removed or reduced.
#![doc = include_str!("reclaimable_pods_decreased.md")]
#![doc = include_str!("reclaimable_pods_removed.md")]

use super::quota_status::{has_quota_reserved, is_elastic, pod_counts};
use super::reclaimable_pods::place;
use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use crate::settings::Settings;
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::foreign::kueue::Workload;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const DECREASED: Rule<Workload> = Rule {
    id: "KL010",
    name: "reclaimable-pods-decreased",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-reclaimable-no-decrease"],
    layers: &[Layer::Webhook],
    doc: include_str!("reclaimable_pods_decreased.md"),
    check: Check::Change(decreased),
};

pub(super) const REMOVED: Rule<Workload> = Rule {
    id: "KL011",
    name: "reclaimable-pods-removed",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-reclaimable-no-removal"],
    layers: &[Layer::Webhook],
    doc: include_str!("reclaimable_pods_removed.md"),
    check: Check::Change(removed),
};

fn decreased(change: &Change<'_, Workload>, context: &Context<'_>, out: &mut Findings) {
    let Some(before) = reclaimable_while_reserved(change, context.settings) else {
        return;
    };
    for reclaimable in &change.new.status.reclaimable_pods {
        let Some(least) = before.get(reclaimable.name.as_str()) else {
            continue;
        };
        if reclaimable.count < *least && !out.is_full() {
            out.invalid(
                place(&reclaimable.name).field("count"),
                reclaimable.count,
                format!("must not go down while quota is reserved; {least} or more is accepted"),
            );
        }
    }
}

fn removed(change: &Change<'_, Workload>, context: &Context<'_>, out: &mut Findings) {
    let Some(before) = reclaimable_while_reserved(change, context.settings) else {
        return;
    };
    let after = change.new.status.reclaimable_pods.iter();
    let after: BTreeSet<&str> = after.map(|it| it.name.as_str()).collect();
    for (name, count) in before {
        if !after.contains(name) && !out.is_full() {
            out.required(
                place(name),
                format!("cannot be removed while quota is reserved; keep it with {count} or more"),
            );
        }
    }
}

/// The stored entries that cannot be reduced: quota is reserved before and after the update, and the pod set was not
/// scaled down since admission.
fn reclaimable_while_reserved<'a>(
    change: &Change<'a, Workload>,
    settings: &Settings,
) -> Option<BTreeMap<&'a str, i32>> {
    if !has_quota_reserved(change.old) || !has_quota_reserved(change.new) {
        return None;
    }
    let stored = change.old.status.reclaimable_pods.iter();
    let mut held: BTreeMap<_, _> = stored.map(|it| (it.name.as_str(), it.count)).collect();
    if is_elastic(change.new, settings) {
        let counts = pod_counts(change.new);
        let admission = change.new.status.admission.as_ref();
        let admitted = admission.into_iter().flat_map(|it| &it.pod_set_assignments);
        for assignment in admitted {
            let count = counts.get(assignment.name.as_str()).copied();
            // More pods were admitted than the pod set has now: the job was scaled down.
            if assignment.count > Some(count.unwrap_or_default()) {
                held.remove(assignment.name.as_str());
            }
        }
    }
    Some(held)
}
