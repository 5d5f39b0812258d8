#![doc = include_str!("admission_usage_not_divisible.md")]

use super::quota_status::has_quota_reserved;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::{PodSetAssignment, Workload};
use lockkeeper_api::quantity::Quantity;

/// The resource that is counted in thousandths.
const CPU: &str = "cpu";

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL006",
    name: "admission-usage-not-divisible",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-admission-usage-multiple-of-count"],
    layers: &[Layer::Webhook],
    doc: include_str!("admission_usage_not_divisible.md"),
    check: Check::Object(check),
};

fn check(workload: &Workload, out: &mut Findings) {
    let Some(admission) = &workload.status.admission else {
        return;
    };
    if !has_quota_reserved(workload) {
        return;
    }
    for (position, assignment) in admission.pod_set_assignments.iter().enumerate() {
        usage(position, assignment, out);
    }
}

fn usage(position: usize, assignment: &PodSetAssignment, out: &mut Findings) {
    let Some(count) = assignment.count.filter(|it| *it > 0) else {
        return;
    };
    for (resource, amount) in &assignment.resource_usage {
        let remainder = units(resource, *amount).checked_rem(i64::from(count));
        if remainder == Some(0) {
            continue;
        }
        let list = FieldPath::new("status.admission.podSetAssignments");
        let unit = if resource == CPU {
            " (in thousandths)"
        } else {
            ""
        };
        out.invalid(
            list.item(position, &assignment.name)
                .field("resourceUsage")
                .key(resource.as_str()),
            amount,
            format!("must be a multiple{unit} of the count of the assignment, which is {count}"),
        );
    }
}

/// The amount in Kueue's units, clamped to 64 bits.
fn units(resource: &str, amount: Quantity) -> i64 {
    let counted = if resource == CPU {
        amount.milli_ceil()
    } else {
        amount.whole_ceil()
    };
    let most = if amount.is_negative() {
        i64::MIN
    } else {
        i64::MAX
    };
    counted.unwrap_or(most)
}
