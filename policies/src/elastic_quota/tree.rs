//! The position of a quota in its tree.

use crate::cluster_view::{Lookup, NamedQuota, QuotaFacts};
use crate::rule::Context;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::{ElasticQuota, ROOT_QUOTA};
use std::collections::BTreeSet;

/// Whether the tree rules skip a quota: the root and, as in Koordinator (`validateQuotaTopology`), a quota directly
/// below the root that cannot have children.
pub(super) fn is_outside_tree(quota: &ElasticQuota) -> bool {
    quota.name() == ROOT_QUOTA || (quota.parent() == ROOT_QUOTA && !quota.is_parent())
}

/// The parent of a quota, if it is known and is not the root.
pub(super) fn parent<'a>(quota: &ElasticQuota, context: &Context<'a>) -> Option<&'a QuotaFacts> {
    match quota.parent() {
        ROOT_QUOTA => None,
        name => context.cluster.quota(name).found(),
    }
}

/// The children of a quota.
pub(super) fn children<'a>(quota: &ElasticQuota, context: &Context<'a>) -> Vec<NamedQuota<'a>> {
    context.cluster.quota_children(quota.name())
}

/// The other children of the parent. The cluster view may contain the stored version of the quota itself, which is left
/// out.
pub(super) fn siblings<'a>(quota: &ElasticQuota, context: &Context<'a>) -> Vec<NamedQuota<'a>> {
    let mut all = context.cluster.quota_children(quota.parent());
    all.retain(|(name, _)| *name != quota.name());
    all
}

/// The known ancestors of a quota, from its parent up to the quota below the root. In a cycle the list ends before a
/// quota repeats.
pub(super) fn ancestors<'a>(
    parent: &str,
    context: &Context<'a>,
) -> Vec<(String, Lookup<&'a QuotaFacts>)> {
    let mut out: Vec<(String, Lookup<&QuotaFacts>)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut name = parent.to_owned();
    // Objects of two requests can form a cycle; Koordinator does not reject it.
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

/// The path of a label.
pub(super) fn label(key: &'static str) -> FieldPath {
    FieldPath::new("metadata.labels").key(key)
}

/// The path of an annotation.
pub(super) fn annotation(key: &'static str) -> FieldPath {
    FieldPath::new("metadata.annotations").key(key)
}

/// The path of the min of a resource.
pub(super) fn min(resource: &str) -> FieldPath {
    FieldPath::new("spec.min").key(resource)
}

/// The path of the max of a resource.
pub(super) fn max(resource: &str) -> FieldPath {
    FieldPath::new("spec.max").key(resource)
}
