#![doc = include_str!("invalid_namespace_selector.md")]

use crate::finding::Findings;
use crate::names;
use crate::quota::IsQueue;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::field_path::FieldPath;

pub(crate) const fn rule<T: IsQueue>() -> Rule<T> {
    Rule {
        id: "CQ011",
        name: "invalid-namespace-selector",
        since: "0.1.0",
        action: T::ACTION,
        covers: &["cq-namespace-selector-valid"],
        layers: &[Layer::Webhook],
        doc: include_str!("invalid_namespace_selector.md"),
        check: Check::Object(check::<T>),
    }
}

fn check<T: IsQueue>(object: &T, out: &mut Findings) {
    if let Some(selector) = object.selector() {
        names::selector(selector, &FieldPath::new("spec.namespaceSelector"), out);
    }
}
