//! Pod templates are immutable while quota is reserved. They have no schema, so CEL cannot compare them.

use super::pod_groups::path;
use super::pods_changed_while_reserved::by_name;
use super::quota_status::has_quota_reserved;
use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use crate::semantic_equality;
use lockkeeper_api::Workload;
use lockkeeper_api::config::Action;

/// Checks the pod templates.
pub(super) const RULE: Rule<Workload> = Rule {
    id: "WL018",
    name: "template-changed-while-reserved",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &["wl-podsets-immutable-reserved"],
    layers: &[Layer::Webhook],
    doc: include_str!("template_changed_while_reserved.md"),
    check: Check::Change(template),
};

fn template(change: &Change<'_, Workload>, _: &Context<'_>, out: &mut Findings) {
    if !has_quota_reserved(change.old) || !has_quota_reserved(change.new) {
        return;
    }
    let old = by_name(&change.old.spec.pod_sets);
    for (position, pod_set) in change.new.spec.pod_sets.iter().enumerate() {
        // As in Kueue, `1000m` equals `1`, and a missing field an empty one.
        let was = old.get(pod_set.name());
        if was.is_some_and(|was| {
            !semantic_equality::templates_equal(&was.template, &pod_set.template)
        }) {
            out.invalid(
                path(position, pod_set).field("template"),
                pod_set.name(),
                "the pods of this pod set are immutable while quota is reserved; keep the template, or deactivate the \
                 workload first",
            );
        }
    }
}
