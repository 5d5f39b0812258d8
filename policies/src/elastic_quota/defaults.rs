//! Defaults of an ElasticQuota.

use crate::cluster_view::ClusterView;
use crate::defaulting::Defaults;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::{
    self, ElasticQuota, PARENT, ROOT_QUOTA, SHARED_WEIGHT, TREE_ID,
};
use std::collections::BTreeMap;

/// The parent, its tree and the shared weight, as Koordinator does (`fillQuotaDefaultInformation`). Values that
/// Koordinator rejects while defaulting stay unchanged, so that the rules reject them.
pub(super) fn defaults(quota: &ElasticQuota, cluster: &dyn ClusterView) -> Defaults {
    let mut out = Defaults::default();
    if quota.name() == ROOT_QUOTA {
        return out;
    }
    let mut labels = Vec::new();
    if quota.label(PARENT).is_empty() {
        labels.push((PARENT, ROOT_QUOTA.to_owned()));
    }
    if quota.label(TREE_ID).is_empty()
        && quota.parent() != ROOT_QUOTA
        && let Some(parent) = cluster.quota(quota.parent()).found()
        && !parent.tree_id.is_empty()
    {
        labels.push((TREE_ID, parent.tree_id.clone()));
    }
    let present = quota.metadata.labels.is_some();
    entries(&mut out, FieldPath::new("metadata.labels"), present, labels);

    let weight = shared_weight(quota).map(|weight| (SHARED_WEIGHT, weight));
    let annotations = weight.into_iter().collect();
    let present = quota.metadata.annotations.is_some();
    let field = FieldPath::new("metadata.annotations");
    entries(&mut out, field, present, annotations);
    out
}

/// Sets entries of a map that may be absent.
fn entries(
    out: &mut Defaults,
    map: FieldPath,
    is_present: bool,
    entries: Vec<(&'static str, String)>,
) {
    if is_present {
        for (key, value) in entries {
            out.set(map.clone().key(key), value);
        }
    } else if !entries.is_empty() {
        out.set(map, entries.into_iter().collect::<BTreeMap<_, _>>());
    }
}

/// The defaulted shared weight: for each resource of max the value of the annotation, or max itself where the
/// annotation has no value. `None` if the annotation is equal to that already.
fn shared_weight(quota: &ElasticQuota) -> Option<String> {
    let max = quota.spec.max.as_ref();
    let given = match quota.annotation(SHARED_WEIGHT) {
        "" => return serde_json::to_string(&max).ok(),
        given => koordinator::parse_quantities(given).ok()?,
    };
    let max = max.cloned().unwrap_or_default();
    if given.keys().eq(max.keys()) {
        return None;
    }
    let of = |resource: &String| given.get(resource).copied();
    let wanted = max
        .iter()
        .map(|(resource, max)| (resource, of(resource).unwrap_or(*max)));
    serde_json::to_string(&wanted.collect::<BTreeMap<_, _>>()).ok()
}
