#![doc = include_str!("no_namespace_selected.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::ClusterQueue;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "CQ032",
    name: "no-namespace-selected",
    since: "0.1.0",
    action: Action::Warn,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("no_namespace_selected.md"),
    check: Check::Object(check),
};

fn check(object: &ClusterQueue, out: &mut Findings) {
    if object.spec.namespace_selector.is_none() {
        out.required(
            FieldPath::new("spec.namespaceSelector"),
            "without it the queue admits workloads of no namespace; set {} for all namespaces, or matchLabels for some",
        );
    }
}
