#![doc = include_str!("concurrent_admission_changed.md")]

use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::ClusterQueue;

pub(super) const RULE: Rule<ClusterQueue> = Rule {
    id: "KQ003",
    name: "concurrent-admission-changed",
    since: "0.1.0",
    action: Action::Off,
    covers: &["cq-concurrent-admission-immutable"],
    layers: &[Layer::Webhook],
    doc: include_str!("concurrent_admission_changed.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, ClusterQueue>, _: &Context<'_>, out: &mut Findings) {
    let policies = [change.old, change.new].map(|it| &it.spec.concurrent_admission_policy);
    let [old, new] = policies;
    if old != new {
        let seen = new.as_ref().map_or("", |it| it.migration.mode.as_str());
        out.invalid(
            FieldPath::new("spec.concurrentAdmissionPolicy"),
            seen,
            "field is immutable; keep it as it is, or make a new ClusterQueue",
        );
    }
}
