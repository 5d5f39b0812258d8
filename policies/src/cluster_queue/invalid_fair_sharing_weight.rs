#![doc = include_str!("invalid_fair_sharing_weight.md")]

use crate::cel::{CelRule, is_amount, quantity, same_amount};
use crate::finding::Findings;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

const NEGATIVE: CelRule = CelRule::new(
    "spec.fairSharing",
    concat!(
        "!(",
        is_amount!("weight"),
        ") || ",
        quantity!("self.weight"),
        ".compareTo(quantity('0')) >= 0"
    ),
    "must be 0 or more",
)
.message_expression("'\"' + string(self.weight) + '\": must be 0 or more'")
.field_path(".weight")
.unchanged_when(same_amount!("weight"));

const TINY: CelRule = CelRule::new(
    "spec.fairSharing",
    concat!(
        "!(",
        is_amount!("weight"),
        ") || ",
        quantity!("self.weight"),
        ".compareTo(quantity('0')) <= 0 || ",
        quantity!("self.weight"),
        ".isGreaterThan(quantity('1n'))",
    ),
    "so small a weight counts as 0; must be 0 or more than 1n",
)
.message_expression(
    "'\"' + string(self.weight) + '\": so small a weight counts as 0; must be 0 or more than 1n'",
)
.field_path(".weight")
.unchanged_when(same_amount!("weight"));

pub(crate) const fn rule<T: QuotaFields>() -> Rule<T> {
    Rule {
        id: "CQ013",
        name: "invalid-fair-sharing-weight",
        since: "0.1.0",
        action: T::ACTION,
        covers: &[
            "fair-sharing-weight-non-negative",
            "fair-sharing-weight-not-collapsing",
        ],
        layers: &[Layer::Webhook, Layer::Schema(&[NEGATIVE, TINY])],
        doc: include_str!("invalid_fair_sharing_weight.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    let Some(weight) = object.weight() else {
        return;
    };
    // Kueue reports it one level up.
    let field = if T::OWN {
        FieldPath::new("spec.fairSharing.weight")
    } else {
        FieldPath::new("spec.fairSharing")
    };
    if weight.is_negative() {
        out.invalid(field, weight, "must be 0 or more");
    } else if !weight.is_zero() && weight.nano() <= 1 {
        out.invalid(
            field,
            weight,
            "so small a weight counts as 0; must be 0 or more than 1n",
        );
    }
}
