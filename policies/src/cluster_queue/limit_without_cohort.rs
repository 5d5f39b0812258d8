//! Limits on borrowing and lending in a queue without a cohort.
#![doc = include_str!("borrowing_limit_without_cohort.md")]
#![doc = include_str!("lending_limit_without_cohort.md")]

use crate::cel::{CelRule, limit_needs_parent};
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};

fn borrowing_cel_rule() -> CelRule {
    limit_needs_parent(
        "borrowingLimit",
        "cohortName",
        "a borrowingLimit is set, but there is no queue to borrow from without a cohort; set spec.cohortName or remove the limit",
    )
}

fn lending_cel_rule() -> CelRule {
    limit_needs_parent(
        "lendingLimit",
        "cohortName",
        "a lendingLimit is set, but there is no queue to lend to without a cohort; set spec.cohortName or remove the limit",
    )
}

pub(crate) const fn borrowing_rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ002",
        name: "borrowing-limit-without-cohort",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-borrowing-limit-needs-cohort"],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![borrowing_cel_rule()])],
        doc: include_str!("borrowing_limit_without_cohort.md"),
        check: Check::Object(borrowing::<T>),
    }
}

pub(crate) const fn lending_rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ003",
        name: "lending-limit-without-cohort",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-lending-limit-needs-cohort"],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![lending_cel_rule()])],
        doc: include_str!("lending_limit_without_cohort.md"),
        check: Check::Object(lending::<T>),
    }
}

fn borrowing<T: QuotaFields>(object: &T, out: &mut Findings) {
    if object.is_in_cohort() {
        return;
    }
    quota::visit_quotas(object.groups(), out, |place, out| {
        if let Some(limit) = place.quota.borrowing_limit {
            out.invalid(
                place.field("borrowingLimit"),
                limit,
                "there is no queue to borrow from without a cohort; set spec.cohortName or remove \
                 the limit",
            );
        }
    });
}

fn lending<T: QuotaFields>(object: &T, out: &mut Findings) {
    if object.is_in_cohort() {
        return;
    }
    quota::visit_quotas(object.groups(), out, |place, out| {
        if let Some(limit) = place.quota.lending_limit {
            out.invalid(
                place.field("lendingLimit"),
                limit,
                "there is no queue to lend to without a cohort; set spec.cohortName or remove the \
                 limit",
            );
        }
    });
}
