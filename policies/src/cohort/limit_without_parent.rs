#![doc = include_str!("limit_without_parent.md")]

use crate::finding::Findings;
use crate::quota;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::Cohort;
use lockkeeper_api::config::Action;

pub(super) const RULE: Rule<Cohort> = Rule {
    id: "CO001",
    name: "limit-without-parent",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["cohort-limits-need-parent"],
    layers: &[Layer::Webhook],
    doc: include_str!("limit_without_parent.md"),
    check: Check::Object(check),
};

fn check(cohort: &Cohort, out: &mut Findings) {
    if cohort.spec.parent_name.is_some() {
        return;
    }
    quota::each(&cohort.spec.resource_groups, out, |place, out| {
        let limits = [
            ("borrowingLimit", place.quota.borrowing_limit),
            ("lendingLimit", place.quota.lending_limit),
        ];
        for (name, limit) in limits {
            if let Some(limit) = limit {
                out.invalid(
                    place.field(name),
                    limit,
                    "a root cohort has nobody to borrow from or lend to; set spec.parentName or \
                     remove the limit",
                );
            }
        }
    });
}
