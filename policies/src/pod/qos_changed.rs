#![doc = include_str!("qos_changed.md")]

use super::qos;
use crate::finding::{Findings, quoted};
use crate::rule::{Change, Check, Context, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::{PRIORITY_CLASS, QOS_CLASS, SUB_PRIORITY};

/// Koordinator's feature gate; if it is on, the priority within a class may change.
const PRIORITY_MAY_CHANGE: &str = "ColocationProfileSkipValidatingPriority";

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO007",
    name: "koordinator-qos-changed",
    since: "0.1.0",
    action: Action::Off,
    covers: &["kpod-qos-immutable"],
    layers: &[Layer::Webhook],
    doc: include_str!("qos_changed.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Pod>, context: &Context<'_>, out: &mut Findings) {
    let (old, new) = (change.old, change.new);
    unchanged(
        super::label(QOS_CLASS),
        [qos::class(old), qos::class(new)],
        out,
    );

    let by_label = [old, new].map(|pod| super::value(pod, PRIORITY_CLASS).is_some());
    // The class comes from the label or from the priority: the finding names the one that is set.
    let field = if by_label.contains(&true) {
        super::label(PRIORITY_CLASS)
    } else {
        FieldPath::new("spec.priority")
    };
    unchanged(field, [old, new].map(qos::priority_class), out);

    if !context.settings.is_gate_enabled(PRIORITY_MAY_CHANGE, false) {
        let values = [old, new].map(|pod| super::value(pod, SUB_PRIORITY).unwrap_or_default());
        unchanged(super::label(SUB_PRIORITY), values, out);
    }
}

fn unchanged(field: FieldPath, [old, new]: [&str; 2], out: &mut Findings) {
    if old != new {
        let detail = match old {
            "" => "must stay unset: the pod was created without it".to_owned(),
            old => format!("must stay {}", quoted(old)),
        };
        out.invalid(field, new, detail);
    }
}
