#![doc = include_str!("negative_quota.md")]

use crate::cel::{CelRule, is_amount, quantity, same_amount};
use crate::finding::Findings;
use crate::quota;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};

macro_rules! not_negative {
    ($field:literal) => {
        CelRule::new(
            "spec.resourceGroups[].flavors[].resources[]",
            concat!(
                "!(",
                is_amount!($field),
                ") || ",
                quantity!("self.", $field),
                ".compareTo(quantity('0')) >= 0"
            ),
            "must be 0 or more",
        )
        .message_expression(concat!(
            "'\"' + string(self.",
            $field,
            ") + '\": must be 0 or more'"
        ))
        .field_path(concat!(".", $field))
        .unchanged_when(same_amount!($field))
    };
}

const NOMINAL: CelRule = not_negative!("nominalQuota");
const BORROWING: CelRule = not_negative!("borrowingLimit");
const LENDING: CelRule = not_negative!("lendingLimit");

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
        layers: &[
            Layer::Webhook,
            Layer::Schema(&[NOMINAL, BORROWING, LENDING]),
        ],
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
