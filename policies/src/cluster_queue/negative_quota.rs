#![doc = include_str!("negative_quota.md")]

use crate::cel::{CelRule, is_quantity, quantity, same_quantity};
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};

/// The rule that a quantity of a quota is not negative.
fn not_negative(field: &'static str) -> CelRule {
    CelRule::new(
        "spec.resourceGroups[].flavors[].resources[]",
        format!(
            "!({}) || {}.compareTo(quantity('0')) >= 0",
            is_quantity(field),
            quantity(&format!("self.{field}"))
        ),
        "must be 0 or more",
    )
    .message_expression(format!(
        "'\"' + string(self.{field}) + '\": must be 0 or more'"
    ))
    .field_path(format!(".{field}"))
    .unchanged_when(same_quantity(field))
}

fn cel_rules() -> Vec<CelRule> {
    ["nominalQuota", "borrowingLimit", "lendingLimit"]
        .map(not_negative)
        .into()
}

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ008",
        name: "negative-quota",
        since: "0.1.0",
        action: T::ACTION,
        covers: &[
            "cq-nominal-quota-non-negative",
            "cq-borrowing-limit-non-negative",
            "cq-lending-limit-non-negative",
        ],
        layers: &[Layer::Webhook, Layer::Schema(cel_rules)],
        doc: include_str!("negative_quota.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    quota::visit_quotas(object.groups(), out, |place, out| {
        let amounts = [
            ("nominalQuota", Some(place.quota.nominal_quota)),
            ("borrowingLimit", place.quota.borrowing_limit),
            ("lendingLimit", place.quota.lending_limit),
        ];
        for (name, amount) in amounts {
            match amount {
                Some(amount) if amount.is_negative() => {
                    out.invalid(place.field(name), amount, "must be 0 or more");
                }
                _ => {}
            }
        }
    });
}
