#![doc = include_str!("invalid_fair_sharing_weight.md")]

use crate::cel::{CelRule, is_quantity, quantity, same_quantity};
use crate::finding::Findings;
use crate::quota::QuotaFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

fn negative() -> CelRule {
    CelRule::new(
        "spec.fairSharing",
        format!(
            "!({}) || {}.compareTo(quantity('0')) >= 0",
            is_quantity("weight"),
            quantity("self.weight")
        ),
        "must be 0 or more",
    )
    .message_expression("'\"' + string(self.weight) + '\": must be 0 or more'")
    .field_path(".weight")
    .unchanged_when(same_quantity("weight"))
}

fn tiny() -> CelRule {
    CelRule::new(
    "spec.fairSharing",
    format!(
        "!({}) || {weight}.compareTo(quantity('0')) <= 0 || {weight}.isGreaterThan(quantity('1n'))",
        is_quantity("weight"),
        weight = quantity("self.weight")
    ),
    "so small a weight counts as 0; must be 0 or more than 1n",
)
.message_expression(
    "'\"' + string(self.weight) + '\": so small a weight counts as 0; must be 0 or more than 1n'",
)
.field_path(".weight")
.unchanged_when(same_quantity("weight"))
}

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
        layers: &[Layer::Webhook, Layer::Schema(|| vec![negative(), tiny()])],
        doc: include_str!("invalid_fair_sharing_weight.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QuotaFields>(object: &T, out: &mut Findings) {
    let Some(weight) = object.weight() else {
        return;
    };
    // Kueue reports the finding at the parent field.
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
