#![doc = include_str!("quota_too_large.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::quota;
use crate::quota::QueueFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

fn flavors() -> CelRule {
    CelRule::new(
        "spec.resourceGroups",
        "self.map(it, size(it.flavors)).sum() <= 256",
        "all groups together have at most 256 flavors",
    )
    .unchanged_when(
        "self.map(it, size(it.flavors)).sum() == oldSelf.map(it, size(it.flavors)).sum()",
    )
}

fn resources() -> CelRule {
    CelRule::new(
    "spec.resourceGroups",
    "self.map(it, size(it.coveredResources)).sum() <= 256",
    "all groups together have at most 256 covered resources",
)
.unchanged_when("self.map(it, size(it.coveredResources)).sum() == oldSelf.map(it, size(it.coveredResources)).sum()")
}

fn pairs() -> CelRule {
    CelRule::new(
    "spec.resourceGroups[]",
    "size(self.flavors) * size(self.coveredResources) <= 512",
    "flavors times covered resources of a group are at most 512",
)
.unchanged_when("size(self.flavors) * size(self.coveredResources) == size(oldSelf.flavors) * size(oldSelf.coveredResources)")
}

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ010",
        name: "quota-too-large",
        since: "0.1.0",
        action: T::ACTION,
        covers: &[
            "cq-total-flavors-max",
            "cq-total-covered-resources-max",
            "cq-flavor-resource-combinations-max",
        ],
        layers: &[
            Layer::Webhook,
            Layer::Schema(|| vec![flavors(), resources(), pairs()]),
        ],
        doc: include_str!("quota_too_large.md"),
        check: Check::Object(check::<T>),
    }
}

/// The most flavors, and the most covered resources, of all groups together.
const TOTAL_MAX: usize = 256;

/// The most pairs of flavor and resource in one group.
const COMBINATIONS_MAX: usize = 512;

fn check<T: QueueFields>(object: &T, out: &mut Findings) {
    let groups = object.groups();
    let flavors = groups.iter().map(|it| it.flavors.len());
    let resources = groups.iter().map(|it| it.covered_resources.len());
    let totals = [
        ("flavors", flavors.fold(0, usize::saturating_add)),
        (
            "covered resources",
            resources.fold(0, usize::saturating_add),
        ),
    ];
    for (what, total) in totals {
        if total > TOTAL_MAX {
            out.invalid(
                FieldPath::new("spec.resourceGroups"),
                total,
                format!("all groups together have at most {TOTAL_MAX} {what}"),
            );
        }
    }
    for (index, group) in groups.iter().enumerate() {
        let pairs = group
            .flavors
            .len()
            .saturating_mul(group.covered_resources.len());
        if pairs > COMBINATIONS_MAX {
            out.invalid(
                quota::group_path(index, group),
                pairs,
                format!(
                    "flavors times covered resources of a group are at most {COMBINATIONS_MAX}"
                ),
            );
        }
    }
}
