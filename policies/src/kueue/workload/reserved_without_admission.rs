#![doc = include_str!("reserved_without_admission.md")]

use super::quota_status::has_quota_reserved;
use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule, Transition};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::Workload;

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL004",
    name: "reserved-without-admission",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-admission-required-when-reserved"],
    layers: &[Layer::Webhook],
    doc: include_str!("reserved_without_admission.md"),
    check: Check::Transition(check),
};

fn check(versions: &Transition<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    // The kind does not ratchet, so the rule itself exempts a stored inconsistency.
    if lacks_admission(versions.new) && !versions.old.is_some_and(lacks_admission) {
        out.required(
            FieldPath::new("status.admission"),
            "must be set while the condition QuotaReserved is True",
        );
    }
}

fn lacks_admission(workload: &Workload) -> bool {
    has_quota_reserved(workload) && workload.status.admission.is_none()
}
