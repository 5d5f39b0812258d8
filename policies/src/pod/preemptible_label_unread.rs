#![doc = include_str!("preemptible_label_unread.md")]

use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::labels::PREEMPTIBLE;

fn cel_rule() -> CelRule {
    CelRule::new(
    "metadata",
    "!has(self.labels) || !('quota.scheduling.koordinator.sh/preemptible' in self.labels) \
     || self.labels['quota.scheduling.koordinator.sh/preemptible'] in ['true', 'false']",
    "counts as \"true\", as only the exact value \"false\" makes a pod non-preemptible; write one of the two",
)
.field_path(".labels")
.unchanged_when(
    "has(oldSelf.labels) && 'quota.scheduling.koordinator.sh/preemptible' in oldSelf.labels \
     && self.labels['quota.scheduling.koordinator.sh/preemptible'] \
     == oldSelf.labels['quota.scheduling.koordinator.sh/preemptible']",
)
}

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO004",
    name: "preemptible-label-unread",
    since: "0.1.0",
    action: Action::Warn,
    covers: &["kpod-preemptible-values"],
    layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
    doc: include_str!("preemptible_label_unread.md"),
    check: Check::Object(check),
};

fn check(pod: &Pod, out: &mut Findings) {
    if let Some(value) = super::value(pod, PREEMPTIBLE)
        && !["true", "false"].contains(&value)
    {
        out.invalid(
            super::label(PREEMPTIBLE),
            value,
            "counts as \"true\", as only the exact value \"false\" makes a pod non-preemptible; write one of \
             the two",
        );
    }
}
