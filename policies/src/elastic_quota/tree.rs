//! A quota among the other quotas.

use crate::cluster_view::{Lookup, NamedQuota, QuotaFacts};
use crate::rule::Context;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, ROOT_QUOTA};
use std::collections::BTreeSet;

/// Whether the rules on trees say nothing of a quota: of the root, and, as in Koordinator
/// (`validateQuotaTopology`), of one directly below it that no other quota may be below.
pub(super) fn is_outside_tree(quota: &ElasticQuota) -> bool {
    quota.name() == ROOT_QUOTA || (quota.parent() == ROOT_QUOTA && !quota.is_parent())
}

/// The quota that it is below, if that is known and not the root.
pub(super) fn parent<'a>(quota: &ElasticQuota, context: &Context<'a>) -> Option<&'a QuotaFacts> {
    match quota.parent() {
        ROOT_QUOTA => None,
        name => context.cluster.quota(name).found(),
    }
}

/// The quotas below it.
pub(super) fn children<'a>(quota: &ElasticQuota, context: &Context<'a>) -> Vec<NamedQuota<'a>> {
    context.cluster.quota_children(quota.name())
}

/// The other quotas below its parent. The world may know the quota itself, as it was.
pub(super) fn siblings<'a>(quota: &ElasticQuota, context: &Context<'a>) -> Vec<NamedQuota<'a>> {
    let mut all = context.cluster.quota_children(quota.parent());
    all.retain(|(name, _)| *name != quota.name());
    all
}

/// The quotas above this one, from its parent on to the one below the root, as far as they are known.
/// It stops before a quota that it has been at.
pub(super) fn ancestors<'a>(
    parent: &str,
    context: &Context<'a>,
) -> Vec<(String, Lookup<&'a QuotaFacts>)> {
    let mut out: Vec<(String, Lookup<&QuotaFacts>)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut name = parent.to_owned();
    while name != ROOT_QUOTA && seen.insert(name.clone()) {
        let found = context.cluster.quota(&name);
        let next = match &found {
            Lookup::Found(facts) => Some(facts.parent.clone()),
            Lookup::Absent | Lookup::Unknown => None,
        };
        out.push((name, found));
        match next {
            Some(next) => name = next,
            None => break,
        }
    }
    out
}

/// The place of a label.
pub(super) fn label(key: &'static str) -> FieldPath {
    FieldPath::new("metadata.labels").key(key)
}

/// The place of an annotation.
pub(super) fn annotation(key: &'static str) -> FieldPath {
    FieldPath::new("metadata.annotations").key(key)
}

/// The place of the min of a resource.
pub(super) fn min(resource: &str) -> FieldPath {
    FieldPath::new("spec.min").key(resource)
}

/// The place of the max of a resource.
pub(super) fn max(resource: &str) -> FieldPath {
    FieldPath::new("spec.max").key(resource)
}
