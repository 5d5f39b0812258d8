#![doc = include_str!("invalid_namespace_selector.md")]

use crate::cel::{CelRule, valid_labels};
use crate::finding::Findings;
use crate::name_validation;
use crate::quota::QueueFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

fn labels() -> CelRule {
    valid_labels("spec.namespaceSelector", "matchLabels")
}

fn keys() -> CelRule {
    CelRule::new(
        "spec.namespaceSelector.matchExpressions[]",
        "!format.qualifiedName().validate(self.key).hasValue()",
        "must be a label key",
    )
    .field_path(".key")
    .unchanged_when("self.key == oldSelf.key")
}

/// A policy, not a schema rule: there may be 65,536 values, which costs too much for a schema.
fn values() -> CelRule {
    CelRule::new(
    "spec.namespaceSelector.matchExpressions[]",
    "!has(self.values) || self.values.all(it, !format.labelValue().validate(it).hasValue())",
    "must be label values: at most 63 alphanumeric characters, '-', '_' or '.', with an alphanumeric one first and last",
)
.field_path(".values")
.unchanged_when("has(oldSelf.values) && self.values == oldSelf.values")
}

fn count() -> CelRule {
    CelRule::new(
        "spec.namespaceSelector.matchExpressions[]",
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        "must be given for the operators In and NotIn, and for no other",
    )
    .field_path(".values")
    .unchanged_when(
        "self.operator == oldSelf.operator && has(self.values) == has(oldSelf.values) \
       && (!has(self.values) || size(self.values) == size(oldSelf.values))",
    )
}

pub(crate) const fn rule<T: QueueFields>() -> Rule<T> {
    Rule {
        id: "CQ011",
        name: "invalid-namespace-selector",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-namespace-selector-valid"],
        layers: &[
            Layer::Webhook,
            Layer::Schema(|| vec![labels(), keys(), count()]),
            Layer::Policy(|| vec![values()]),
        ],
        doc: include_str!("invalid_namespace_selector.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: QueueFields>(object: &T, out: &mut Findings) {
    if let Some(selector) = object.namespace_selector() {
        name_validation::selector(selector, &FieldPath::new("spec.namespaceSelector"), out);
    }
}
