#![doc = include_str!("pod_sets_changed_while_reserved.md")]

use super::quota_status::{COUNT_DEFAULT, ELASTIC_GATE, has_quota_reserved};
use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use crate::semantic_equality;
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{PodSet, Workload};

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL003",
    name: "pod-sets-changed-while-reserved",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-podsets-immutable-reserved"],
    layers: &[Layer::Webhook],
    doc: include_str!("pod_sets_changed_while_reserved.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Workload>, context: &Context<'_>, out: &mut Findings) {
    if !has_quota_reserved(change.old) {
        return;
    }
    let (old, new) = (&change.old.spec.pod_sets, &change.new.spec.pod_sets);
    let place = FieldPath::new("spec.podSets");
    if old.len() != new.len() {
        out.invalid(
            place,
            new.len(),
            format!(
                "no pod set can be added or removed while quota is reserved; keep the {} there are",
                old.len(),
            ),
        );
        return;
    }
    let may_shrink = context.settings.is_gate_enabled(ELASTIC_GATE, true);
    // By position, not by name: the exchange of two pod sets is a change.
    for (position, (old, new)) in old.iter().zip(new).enumerate() {
        // With a dot, as Kueue prints it.
        let place = || place.clone().named(position.to_string());
        let [before, after] = [old, new].map(|it| it.count.unwrap_or(COUNT_DEFAULT));
        if !is_same_but_for_count(old, new) {
            let but = if may_shrink {
                ", except for a lower count"
            } else {
                ""
            };
            out.invalid(
                place(),
                &new.name,
                format!("is immutable while quota is reserved{but}"),
            );
        } else if after > before || (after < before && !may_shrink) {
            let or_less = if may_shrink { " or less" } else { "" };
            out.invalid(
                place(),
                after,
                format!(
                    "the count cannot change to this while quota is reserved; keep {before}{or_less}"
                ),
            );
        }
    }
}

fn is_same_but_for_count(old: &PodSet, new: &PodSet) -> bool {
    old.name == new.name
        && old.min_count == new.min_count
        && old.topology_request == new.topology_request
        && semantic_equality::templates_equal(&old.template, &new.template)
}
