#![doc = include_str!("invalid_node_labels.md")]

use crate::expression::Expression;
use crate::finding::Findings;
use crate::names;
use crate::resource_flavor::IsFlavor;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

const EXPRESSION: Expression = Expression::new(
    "spec",
    "!has(self.nodeLabels) || self.nodeLabels.all(it, !format.qualifiedName().validate(it).hasValue() \
     && !format.labelValue().validate(self.nodeLabels[it]).hasValue())",
    "the keys must be label keys and the values label values: alphanumeric characters, '-', '_' or '.', with an \
     alphanumeric one first and last",
)
.detailed(
    "'\"' + self.nodeLabels.filter(it, format.qualifiedName().validate(it).hasValue() \
     || format.labelValue().validate(self.nodeLabels[it]).hasValue())[0] \
     + '\": this label has a faulty key or value: alphanumeric characters, - and _ and ., with an alphanumeric one first \
     and last'",
)
.blaming(".nodeLabels")
.kept(
    "has(oldSelf.nodeLabels) && self.nodeLabels.all(it, \
     (!format.qualifiedName().validate(it).hasValue() || it in oldSelf.nodeLabels) \
     && (!format.labelValue().validate(self.nodeLabels[it]).hasValue() \
     || oldSelf.nodeLabels.exists(was, oldSelf.nodeLabels[was] == self.nodeLabels[it])))",
);

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
