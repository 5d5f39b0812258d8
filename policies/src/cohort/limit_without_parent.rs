#![doc = include_str!("limit_without_parent.md")]

use crate::cel::{CelRule, limit_needs_parent};
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};

fn borrowing() -> CelRule {
    limit_needs_parent(
        "borrowingLimit",
        "parentName",
        "a borrowingLimit is set, but a root cohort has no cohort to borrow from; set spec.parentName or remove the limit",
    )
}

fn lending() -> CelRule {
    limit_needs_parent(
        "lendingLimit",
        "parentName",
        "a lendingLimit is set, but a root cohort has no cohort to lend to; set spec.parentName or remove the limit",
    )
}

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CO001",
        name: "limit-without-parent",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cohort-limits-need-parent"],
        layers: &[
            Layer::Webhook,
            Layer::Schema(|| vec![borrowing(), lending()]),
        ],
        doc: include_str!("limit_without_parent.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    if object.is_in_cohort() {
        return;
    }
    quota::visit_quotas(object.groups(), out, |place, out| {
        let limits = [
            ("borrowingLimit", "borrow from", place.quota.borrowing_limit),
            ("lendingLimit", "lend to", place.quota.lending_limit),
        ];
        for (name, verb, limit) in limits {
            if let Some(limit) = limit {
                out.invalid(
                    place.field(name),
                    limit,
                    format!(
                        "a root cohort has no cohort to {verb}; set spec.parentName or remove the limit"
                    ),
                );
            }
        }
    });
}
