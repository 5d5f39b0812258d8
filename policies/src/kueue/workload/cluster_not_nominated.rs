#![doc = include_str!("cluster_not_nominated.md")]

use super::quota_status::{ELASTIC_GATE, annotation};
use crate::finding::{Findings, join_names};
use crate::rule::{Change, Check, Context, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::kueue::Workload;

/// The annotation of a workload that replaces another one of an elastic job.
const REPLACES: &str = "kueue.x-k8s.io/workload-slice-replacement-for";

pub(super) const RULE: Rule<Workload> = Rule {
    id: "KL015",
    name: "cluster-not-nominated",
    since: "0.1.0",
    action: Workload::ACTION,
    covers: &["wl-cluster-name-nominated"],
    layers: &[Layer::Webhook],
    doc: include_str!("cluster_not_nominated.md"),
    check: Check::Change(check),
};

fn check(change: &Change<'_, Workload>, context: &Context<'_>, out: &mut Findings) {
    let (old, new) = (&change.old.status, &change.new.status);
    let (None, Some(name)) = (&old.cluster_name, &new.cluster_name) else {
        return;
    };
    let replaces = annotation(change.new, REPLACES).is_some();
    let goes_where_the_other_is = replaces && context.settings.is_gate_enabled(ELASTIC_GATE, true);
    // A replacement runs in the cluster of the workload that it replaces, without a nomination.
    if goes_where_the_other_is || old.nominated_cluster_names.contains(name) {
        return;
    }
    let nominated = old.nominated_cluster_names.iter().map(String::as_str);
    let detail = match old.nominated_cluster_names.as_slice() {
        [] => "no cluster is nominated; put it into nominatedClusterNames first".to_owned(),
        _ => format!(
            "must be one of the clusters nominated before: {}",
            join_names(nominated),
        ),
    };
    out.invalid(FieldPath::new("status.clusterName"), name, detail);
}
