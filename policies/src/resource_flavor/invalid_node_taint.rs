#![doc = include_str!("invalid_node_taint.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::name_validation;
use crate::resource_flavor::FlavorFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;
use std::collections::BTreeSet;

fn key() -> CelRule {
    CelRule::new(
        "spec.nodeTaints[]",
        "!format.qualifiedName().validate(self.key).hasValue()",
        "must be a label key",
    )
    .message_expression("'\"' + self.key + '\": must be a label key'")
    .field_path(".key")
    .unchanged_when("self.key == oldSelf.key")
}

fn value() -> CelRule {
    CelRule::new(
    "spec.nodeTaints[]",
    "!has(self.value) || !format.labelValue().validate(self.value).hasValue()",
    "must be a label value: alphanumeric characters, '-', '_' or '.', with an alphanumeric one first and last",
)
.message_expression(
    "'\"' + self.value + '\": must be a label value: alphanumeric characters, - and _ and ., with an alphanumeric one \
     first and last'",
)
.field_path(".value")
.unchanged_when("has(oldSelf.value) && self.value == oldSelf.value")
}

fn twice() -> CelRule {
    CelRule::new(
        "spec",
        "!has(self.nodeTaints) || self.nodeTaints.all(it, \
     self.nodeTaints.filter(other, other.key == it.key && other.effect == it.effect).size() == 1)",
        "a key has each effect at most once",
    )
    .field_path(".nodeTaints")
    .unchanged_when(
        "has(oldSelf.nodeTaints) && self.nodeTaints.all(it, \
     self.nodeTaints.filter(other, other.key == it.key && other.effect == it.effect).size() <= 1 \
     || self.nodeTaints.filter(other, other.key == it.key && other.effect == it.effect).size() \
     <= oldSelf.nodeTaints.filter(other, other.key == it.key && other.effect == it.effect).size())",
    )
}

pub(crate) const fn rule<T: FlavorFields>() -> Rule<T> {
    Rule {
        id: "RF002",
        name: "invalid-node-taint",
        since: "0.1.0",
        action: T::ACTION,
        covers: &[
            "rf-node-taint-key-valid",
            "rf-node-taint-value-valid",
            "rf-node-taint-unique",
        ],
        layers: &[
            Layer::Webhook,
            Layer::Schema(|| vec![key(), value(), twice()]),
        ],
        doc: include_str!("invalid_node_taint.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: FlavorFields>(object: &T, out: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (at, taint) in object.node_taints().iter().enumerate() {
        let field = FieldPath::new("spec.nodeTaints").index(at);
        for fault in name_validation::label_key(&taint.key) {
            out.invalid(field.clone().field("key"), &taint.key, fault);
        }
        let value = taint.value.as_deref().unwrap_or_default();
        for fault in name_validation::label_value(value) {
            out.invalid(field.clone().field("value"), value, fault);
        }
        if !seen.insert((&taint.key, &taint.effect)) {
            let taint = format!("{}:{}", taint.key, taint.effect);
            out.duplicate(field, &taint, "a key has each effect at most once");
        }
    }
}
