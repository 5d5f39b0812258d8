//! Reclaimable pods against the pod sets.
#![doc = include_str!("reclaimable_pods_of_unknown_pod_set.md")]
#![doc = include_str!("reclaimable_pods_above_count.md")]

use super::quota_status::{is_elastic, pod_counts, pod_set_names};
use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule, Transition};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::Workload;
use std::collections::BTreeSet;

pub(super) const OF_UNKNOWN_POD_SET: Rule<Workload> = Rule {
    id: "KL008",
    name: "reclaimable-pods-of-unknown-pod-set",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-reclaimable-podset-known"],
    layers: &[Layer::Webhook],
    doc: include_str!("reclaimable_pods_of_unknown_pod_set.md"),
    check: Check::Object(of_unknown_pod_set),
};

pub(super) const ABOVE_COUNT: Rule<Workload> = Rule {
    id: "KL009",
    name: "reclaimable-pods-above-count",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-reclaimable-le-count"],
    layers: &[Layer::Webhook],
    doc: include_str!("reclaimable_pods_above_count.md"),
    check: Check::Transition(above_count),
};

/// The path of a pod set's entry: the list is printed by its key.
pub(super) fn place(name: &str) -> FieldPath {
    FieldPath::new("status.reclaimablePods").key(name)
}

fn of_unknown_pod_set(workload: &Workload, out: &mut Findings) {
    let known = pod_set_names(workload);
    let accepted: Vec<&str> = known.iter().copied().collect();
    for reclaimable in &workload.status.reclaimable_pods {
        if !known.contains(reclaimable.name.as_str()) && !out.is_full() {
            out.not_supported(
                place(&reclaimable.name).field("name"),
                &reclaimable.name,
                &accepted,
            );
        }
    }
}

fn above_count(versions: &Transition<'_, Workload>, context: &Context<'_>, out: &mut Findings) {
    let workload = versions.new;
    // Stored counts that exceeded the count before the job was scaled down.
    let stored = versions
        .old
        .filter(|_| is_elastic(workload, context.settings));
    let stored = stored
        .into_iter()
        .flat_map(|it| &it.status.reclaimable_pods);
    let stored: BTreeSet<_> = stored.map(|it| (it.name.as_str(), it.count)).collect();
    let counts = pod_counts(workload);
    for reclaimable in &workload.status.reclaimable_pods {
        let Some(count) = counts.get(reclaimable.name.as_str()) else {
            continue;
        };
        if reclaimable.count > *count
            && !stored.contains(&(reclaimable.name.as_str(), reclaimable.count))
            && !out.is_full()
        {
            out.invalid(
                place(&reclaimable.name).field("count"),
                reclaimable.count,
                format!("must be at most the count of the pod set, which is {count}"),
            );
        }
    }
}
