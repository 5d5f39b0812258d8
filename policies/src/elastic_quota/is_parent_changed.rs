#![doc = include_str!("is_parent_changed.md")]

use super::tree;
use crate::finding::{Findings, join_names, quoted};
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, IS_PARENT};

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ011",
    name: "is-parent-changed-while-used",
    since: "0.1.0",
    action: Action::Off,
    covers: &[
        "eq-is-parent-false-with-children",
        "eq-is-parent-true-with-pods",
    ],
    layers: &[Layer::Webhook],
    doc: include_str!("is_parent_changed.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, ElasticQuota>, context: &Context<'_>, out: &mut Findings) {
    let (old, new) = (change.old, change.new);
    if old.is_parent() == new.is_parent() {
        return;
    }
    // As in Koordinator (`checkIsParentChange`), a quota has either pods or children.
    let reason = if new.is_parent() {
        bound_pod(old, new.name(), context).map(|pod| {
            format!(
                "pod {} uses this quota; must stay \"false\" while pods do",
                quoted(&pod)
            )
        })
    } else {
        let children = context.cluster.quota_children(new.name());
        let names = join_names(children.iter().map(|(name, _)| *name));
        (!children.is_empty()).then(|| {
            format!("quotas are below this one ({names}); must stay \"true\" while it has children")
        })
    };
    if let Some(reason) = reason {
        out.invalid(tree::label(IS_PARENT), new.label(IS_PARENT), reason);
    }
}

/// A pod that uses the quota: its label names the quota, or its namespace has the name of the quota, or the annotation
/// of the stored quota lists its namespace (Koordinator, `hasQuotaBoundedPods`).
fn bound_pod(old: &ElasticQuota, name: &str, context: &Context<'_>) -> Option<String> {
    let named = context.cluster.quota_pods(name, 1);
    if let Some(pod) = named.first.first() {
        return Some(pod.to_string());
    }
    let bound = old.namespaces();
    let mut namespaces = [name].into_iter().chain(bound.iter().map(String::as_str));
    namespaces.find_map(|namespace| {
        let pod = context.cluster.pod_in(namespace)?;
        Some(format!("{namespace}/{pod}"))
    })
}
