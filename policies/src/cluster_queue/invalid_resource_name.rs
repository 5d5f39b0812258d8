#![doc = include_str!("invalid_resource_name.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::name_validation;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};

fn cel_rule() -> CelRule {
    CelRule::new(
    "spec.resourceGroups[]",
    "self.coveredResources.all(it, !format.qualifiedName().validate(it).hasValue())",
    "the name of a resource is a label key, such as cpu or nvidia.com/gpu",
)
.message_expression(
    "'\"' + self.coveredResources.filter(it, format.qualifiedName().validate(it).hasValue())[0] \
     + '\": the name of a resource is a label key, such as cpu or nvidia.com/gpu'",
)
.field_path(".coveredResources")
.unchanged_when(
    "self.coveredResources.all(it, !format.qualifiedName().validate(it).hasValue() || it in oldSelf.coveredResources)",
)
}

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ009",
        name: "invalid-resource-name",
        since: "0.1.0",
        action: T::ACTION,
        covers: &[
            "cq-resource-name-label-key",
            "cohort-resource-groups-semantics",
        ],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
        doc: include_str!("invalid_resource_name.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    for (group_index, group) in object.groups().iter().enumerate() {
        for (position, name) in group.covered_resources.iter().enumerate() {
            if out.is_full() {
                return;
            }
            for fault in name_validation::label_key(name) {
                let field = quota::group_path(group_index, group);
                out.invalid(
                    field.field("coveredResources").item(position, name),
                    name,
                    fault,
                );
            }
        }
    }
}
