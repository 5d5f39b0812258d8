#![doc = include_str!("invalid_toleration_key.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::name_validation;
use crate::resource_flavor::FlavorFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    CelRule::new(
        "spec.tolerations[]",
        "!has(self.key) || self.key == '' || !format.qualifiedName().validate(self.key).hasValue()",
        "must be a label key, or be left out with the operator Exists",
    )
    .message_expression(
        "'\"' + self.key + '\": must be a label key, or be left out with the operator Exists'",
    )
    .field_path(".key")
    .unchanged_when("has(oldSelf.key) && self.key == oldSelf.key")
}

pub(crate) const fn rule<T: FlavorFields>() -> Rule<T> {
    Rule {
        id: "RF003",
        name: "invalid-toleration-key",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["toleration-key-valid"],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
        doc: include_str!("invalid_toleration_key.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: FlavorFields>(object: &T, out: &mut Findings) {
    for (at, toleration) in object.tolerations().iter().enumerate() {
        let key = toleration.key.as_deref().unwrap_or_default();
        if key.is_empty() {
            continue;
        }
        for fault in name_validation::label_key(key) {
            let field = FieldPath::new("spec.tolerations").index(at).field("key");
            out.invalid(field, key, fault);
        }
    }
}
