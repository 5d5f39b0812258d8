#![doc = include_str!("unknown_cluster_queue.md")]

use super::LocalQueueFields;
use crate::cluster_view::Lookup;
use crate::finding::Findings;
use crate::index::IndexedKind;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

/// The least similarity of a name that is suggested.
const SIMILARITY_MIN: f64 = 0.9;

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
    let tree = context.cluster.tree(T::PROJECT);
    if tree.queues().next().is_none() || context.cluster.exists(kind, name) != Lookup::Absent {
        return;
    }
    // Only a similar name: a tenant need not learn which other queues exist.
    let scored = tree.queues().map(|it| (strsim::jaro_winkler(name, it), it));
    let nearest = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    let detail = match nearest.filter(|(score, _)| *score >= SIMILARITY_MIN) {
        Some((_, other)) => format!("did you mean {other}? Otherwise create this ClusterQueue"),
        None => "create this ClusterQueue, or name another".to_owned(),
    };
    out.not_found(FieldPath::new("spec.clusterQueue"), name, detail);
}
