#![doc = include_str!("unknown_cluster_queue.md")]

use super::IsLocalQueue;
use crate::finding::{Findings, listed};
use crate::index::IndexedKind;
use crate::rule::{Check, Context, Layer, Rule};
use crate::world::Lookup;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

pub(super) const fn rule<T: IsLocalQueue>() -> Rule<T> {
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

fn check<T: IsLocalQueue>(queue: &T, context: &Context<'_>, out: &mut Findings) {
    let (kind, name) = (IndexedKind::ClusterQueue(T::FAMILY), queue.cluster_queue());
    let known = listed(context.world.tree(T::FAMILY).queues());
    if known.is_empty() || context.world.exists(kind, name) != Lookup::Absent {
        return;
    }
    out.not_found(
        FieldPath::new("spec.clusterQueue"),
        name,
        format!("create this ClusterQueue, or name one of {known}"),
    );
}
