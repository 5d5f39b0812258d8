#![doc = include_str!("resource_name_no_label_key.md")]

use crate::finding::Findings;
use crate::names;
use crate::quota;
use crate::quota::HasQuota;
use crate::rule::{Check, Layer, Rule};

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
        layers: &[Layer::Webhook],
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
