//! Deletion of quotas that still have children or pods.
#![doc = include_str!("deleted_with_children.md")]
#![doc = include_str!("deleted_with_pods.md")]

use crate::finding::{Findings, join_names};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::ElasticQuota;

pub(super) const BY_QUOTAS: Rule<ElasticQuota> = Rule {
    id: "EQ019",
    name: "quota-deleted-with-children",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-delete-with-children"],
    layers: &[Layer::Webhook],
    doc: include_str!("deleted_with_children.md"),
    check: Check::Delete(by_quotas),
};

pub(super) const BY_PODS: Rule<ElasticQuota> = Rule {
    id: "EQ020",
    name: "quota-deleted-with-pods",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-delete-with-pods"],
    layers: &[Layer::Webhook],
    doc: include_str!("deleted_with_pods.md"),
    check: Check::Delete(by_pods),
};

fn by_quotas(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    let children = context.cluster.quota_children(quota.name());
    if !children.is_empty() {
        let names = join_names(children.iter().map(|(name, _)| *name));
        let detail = format!(
            "is the parent of {names}; delete its children or move them to another parent first"
        );
        out.forbidden(FieldPath::new("metadata.name"), detail);
    }
}

fn by_pods(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    let pods = context.cluster.quota_pods(quota.name(), 0);
    if pods.total > 0 {
        let users = if pods.total == 1 {
            "1 pod names it".to_owned()
        } else {
            format!("{} pods name it", pods.total)
        };
        let detail = format!("{users}; delete them first");
        out.forbidden(FieldPath::new("metadata.name"), detail);
    }
}
