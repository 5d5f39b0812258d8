#![doc = include_str!("resource_name_no_label_key.md")]

use crate::expression::Expression;
use crate::finding::Findings;
use crate::names;
use crate::quota;
use crate::quota::HasQuota;
use crate::rule::{Check, Layer, Rule};

const EXPRESSION: Expression = Expression::new(
    "spec.resourceGroups[]",
    "self.coveredResources.all(it, !format.qualifiedName().validate(it).hasValue())",
    "the name of a resource is a label key, such as cpu or nvidia.com/gpu",
)
.detailed(
    "'\"' + self.coveredResources.filter(it, format.qualifiedName().validate(it).hasValue())[0] \
     + '\": the name of a resource is a label key, such as cpu or nvidia.com/gpu'",
)
.blaming(".coveredResources")
.kept(
    "self.coveredResources.all(it, !format.qualifiedName().validate(it).hasValue() || it in oldSelf.coveredResources)",
);

pub(crate) const fn rule<T: HasQuota>() -> Rule<T> {
    Rule {
        id: "CQ009",
        name: "resource-name-no-label-key",
        since: "0.1.0",
        action: T::ACTION,
        covers: &[
            "cq-resource-name-label-key",
            "cohort-resource-groups-semantics",
        ],
        layers: &[Layer::Webhook, Layer::Schema(&[EXPRESSION])],
        doc: include_str!("resource_name_no_label_key.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: HasQuota>(object: &T, out: &mut Findings) {
    for (group_index, group) in object.groups().iter().enumerate() {
        for (position, name) in group.covered_resources.iter().enumerate() {
            if out.is_full() {
                return;
            }
            for fault in names::label_key(name) {
                let field = quota::group(group_index, group);
                out.invalid(
                    field.field("coveredResources").item(position, name),
                    name,
                    fault,
                );
            }
        }
    }
}
