#![doc = include_str!("unknown_cluster_queue.md")]

use super::LocalQueueFields;
use crate::cluster_view::Lookup;
use crate::finding::{Findings, join_names};
use crate::index::IndexedKind;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const fn rule<T: LocalQueueFields>() -> Rule<T> {
    Rule {
        id: "LQ001",
        name: "unknown-cluster-queue",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("unknown_cluster_queue.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: LocalQueueFields>(queue: &T, context: &Context<'_>, out: &mut Findings) {
    let (kind, name) = (IndexedKind::ClusterQueue(T::PROJECT), queue.cluster_queue());
    let known = join_names(context.cluster.tree(T::PROJECT).queues());
    if known.is_empty() || context.cluster.exists(kind, name) != Lookup::Absent {
        return;
    }
    out.not_found(
        FieldPath::new("spec.clusterQueue"),
        name,
        format!("create this ClusterQueue, or name one of {known}"),
    );
}
