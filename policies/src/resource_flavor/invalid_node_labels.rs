#![doc = include_str!("invalid_node_labels.md")]

use crate::expression::{Expression, labels_of};
use crate::finding::Findings;
use crate::names;
use crate::resource_flavor::IsFlavor;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

const EXPRESSION: Expression = labels_of!("spec", "nodeLabels");

pub(crate) const fn rule<T: IsFlavor>() -> Rule<T> {
    Rule {
        id: "RF001",
        name: "invalid-node-labels",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["rf-node-labels-valid"],
        layers: &[Layer::Webhook, Layer::Schema(&[EXPRESSION])],
        doc: include_str!("invalid_node_labels.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: IsFlavor>(object: &T, out: &mut Findings) {
    names::labels(
        object.node_labels(),
        &FieldPath::new("spec.nodeLabels"),
        out,
    );
}
