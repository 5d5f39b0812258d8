#![doc = include_str!("invalid_pod_set_update.md")]

use super::pod_set_update_of_unknown_pod_set::visit_updates;
use crate::finding::Findings;
use crate::name_validation;
use crate::rule::{Check, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::foreign::kueue::Workload;

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL013",
    name: "invalid-pod-set-update",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-podset-updates-metadata-valid", "toleration-key-valid"],
    layers: &[Layer::Webhook],
    doc: include_str!("invalid_pod_set_update.md"),
    check: Check::Object(check),
};

fn check(workload: &Workload, out: &mut Findings) {
    visit_updates(workload, |update, place| {
        for (position, toleration) in update.tolerations.iter().enumerate() {
            // A toleration without a key matches every taint.
            let key = toleration.key.as_deref().filter(|it| !it.is_empty());
            for fault in key.into_iter().flat_map(name_validation::label_key) {
                let tolerations = place().field("tolerations");
                let field = tolerations.index(position).field("key");
                out.invalid(field, key.unwrap_or_default(), fault);
            }
        }
        name_validation::annotations(&update.annotations, || place().field("annotations"), out);
        name_validation::labels(&update.node_selector, || place().field("nodeSelector"), out);
        name_validation::labels(&update.labels, || place().field("labels"), out);
    });
}
