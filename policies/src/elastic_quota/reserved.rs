//! Quotas that Koordinator creates itself.
#![doc = include_str!("reserved_changed.md")]
#![doc = include_str!("reserved_deleted.md")]

use crate::finding::Findings;
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::{DEFAULT_QUOTA, ElasticQuota, ROOT_QUOTA, SYSTEM_QUOTA};

pub(super) const CHANGED: Rule<ElasticQuota> = Rule {
    id: "EQ007",
    name: "reserved-quota-changed",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-update-noop-skips", "eq-update-system-root-forbidden"],
    layers: &[Layer::Webhook],
    doc: include_str!("reserved_changed.md"),
    check: Check::Change(changed),
};

pub(super) const DELETED: Rule<ElasticQuota> = Rule {
    id: "EQ008",
    name: "reserved-quota-deleted",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-delete-reserved"],
    layers: &[Layer::Webhook],
    doc: include_str!("reserved_deleted.md"),
    check: Check::Delete(deleted),
};

fn changed(change: &Change<'_, ElasticQuota>, _: &Context<'_>, out: &mut Findings) {
    // As in Koordinator (`IsForbiddenModify`), the default quota may change.
    if [SYSTEM_QUOTA, ROOT_QUOTA].contains(&change.new.name()) {
        out.forbidden(
            FieldPath::new("metadata.name"),
            format!(
                "{} belongs to Koordinator; only the fields that its controllers write may change",
                change.new.name()
            ),
        );
    }
}

fn deleted(quota: &ElasticQuota, _: &Context<'_>, out: &mut Findings) {
    if [SYSTEM_QUOTA, ROOT_QUOTA, DEFAULT_QUOTA].contains(&quota.name()) {
        out.forbidden(
            FieldPath::new("metadata.name"),
            format!(
                "{} belongs to Koordinator and cannot be deleted",
                quota.name()
            ),
        );
    }
}
