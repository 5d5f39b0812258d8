//! Changes of quotas that the cluster view does not contain.
#![doc = include_str!("unknown_changed.md")]
#![doc = include_str!("unknown_deleted.md")]

use crate::cluster_view::Lookup;
use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::ElasticQuota;

pub(super) const CHANGED: Rule<ElasticQuota> = Rule {
    id: "EQ009",
    name: "unknown-quota-changed",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-update-must-exist"],
    layers: &[Layer::Webhook],
    doc: include_str!("unknown_changed.md"),
    check: Check::Change(changed),
};

pub(super) const DELETED: Rule<ElasticQuota> = Rule {
    id: "EQ010",
    name: "unknown-quota-deleted",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-delete-unknown"],
    layers: &[Layer::Webhook],
    doc: include_str!("unknown_deleted.md"),
    check: Check::Delete(deleted),
};

fn changed(change: &Change<'_, ElasticQuota>, context: &Context<'_>, out: &mut Findings) {
    check(change.new, context, out);
}

fn deleted(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    check(quota, context, out);
}

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    // Koordinator rejects changes of a quota that its own cache lacks (`ValidUpdateQuota`).
    if context.cluster.quota(quota.name()) == Lookup::Absent {
        out.not_found(
            FieldPath::new("metadata.name"),
            quota.name(),
            "is not in the cache yet, so its position in the quota tree is unknown; try again later",
        );
    }
}
