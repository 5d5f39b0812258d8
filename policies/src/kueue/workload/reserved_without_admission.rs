#![doc = include_str!("reserved_without_admission.md")]

use super::standing::is_reserved;
use crate::finding::Findings;
use crate::guarded::Guarded;
use crate::rule::{Check, Context, Layer, Rule, Versions};
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
    check: Check::Versions(check),
};

fn check(versions: &Versions<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    if lacks_admission(versions.new) && !versions.old.is_some_and(lacks_admission) {
        out.required(
            FieldPath::new("status.admission"),
            "must be set while the condition QuotaReserved is True",
        );
    }
}

fn lacks_admission(workload: &Workload) -> bool {
    is_reserved(workload) && workload.status.admission.is_none()
}
