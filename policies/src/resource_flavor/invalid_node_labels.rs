#![doc = include_str!("invalid_node_labels.md")]

use crate::cel::{CelRule, valid_labels};
use crate::finding::Findings;
use crate::name_validation;
use crate::resource_flavor::FlavorFields;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    valid_labels("spec", "nodeLabels")
}

pub(crate) const fn rule<T: FlavorFields>() -> Rule<T> {
    Rule {
        id: "RF001",
        name: "invalid-node-labels",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["rf-node-labels-valid"],
        layers: &[Layer::Webhook, Layer::Schema(|| vec![cel_rule()])],
        doc: include_str!("invalid_node_labels.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: FlavorFields>(object: &T, out: &mut Findings) {
    name_validation::labels(
        object.node_labels(),
        || FieldPath::new("spec.nodeLabels"),
        out,
    );
}
