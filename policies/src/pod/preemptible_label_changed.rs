#![doc = include_str!("preemptible_label_changed.md")]

use crate::cel::CelRule;
use crate::finding::{Findings, quoted};
use crate::rule::{Change, Check, Context, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::labels::PREEMPTIBLE;

fn cel_rule() -> CelRule {
    CelRule::new(
        "metadata",
        "(has(self.labels) && 'quota.scheduling.koordinator.sh/preemptible' in self.labels \
     ? self.labels['quota.scheduling.koordinator.sh/preemptible'] : '') \
     == (has(oldSelf.labels) && 'quota.scheduling.koordinator.sh/preemptible' in oldSelf.labels \
     ? oldSelf.labels['quota.scheduling.koordinator.sh/preemptible'] : '')",
        "the label must stay as the pod was made with",
    )
    .field_path(".labels")
}

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO003",
    name: "preemptible-label-changed",
    since: "0.1.0",
    action: Action::Off,
    covers: &["kpod-preemptible-immutable"],
    layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
    doc: include_str!("preemptible_label_changed.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Pod>, _: &Context<'_>, out: &mut Findings) {
    // In Koordinator an empty value counts as unset.
    let read = |pod| super::value(pod, PREEMPTIBLE).unwrap_or_default();
    let old = read(change.old);
    if old != read(change.new) {
        let detail = match old {
            "" => "must stay unset: the pod was created without it".to_owned(),
            old => format!("must stay {}", quoted(old)),
        };
        let value = super::display_value(change.new, PREEMPTIBLE);
        out.invalid(super::label(PREEMPTIBLE), value, detail);
    }
}
