#![doc = include_str!("name_taken.md")]

use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::ElasticQuota;

pub(super) const RULE: Rule<ElasticQuota> = Rule {
    id: "EQ005",
    name: "elastic-quota-name-taken",
    since: "0.1.0",
    action: Action::Off,
    covers: &["eq-create-unique"],
    layers: &[Layer::Webhook],
    doc: include_str!("name_taken.md"),
    check: Check::Context(check),
};

fn check(quota: &ElasticQuota, context: &Context<'_>, out: &mut Findings) {
    let namespace = quota.metadata.namespace.as_deref().unwrap_or_default();
    // Koordinator identifies quotas by name alone, although the kind is namespaced.
    if let Some(other) = context
        .cluster
        .quota_in_other_namespace(quota.name(), namespace)
    {
        let detail = format!(
            "there is a quota of this name in namespace {}; choose a name that is unique across all \
             namespaces",
            quoted(other)
        );
        out.duplicate(FieldPath::new("metadata.name"), quota.name(), detail);
    }
}
