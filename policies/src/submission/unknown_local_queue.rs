#![doc = include_str!("unknown_local_queue.md")]

use super::{Submission, local_queue};
use crate::cluster_view::Lookup;
use crate::finding::Findings;
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;

/// The rule for a kind.
pub(crate) const fn rule<T: Submission>() -> Rule<T> {
    Rule {
        id: "QU002",
        name: "unknown-local-queue",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("unknown_local_queue.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: Submission>(object: &T, context: &Context<'_>, out: &mut Findings) {
    if let Some((name, Lookup::Absent)) = local_queue(object, context) {
        out.not_found(
            T::queue_path(),
            name,
            "the job waits until it exists; create this LocalQueue in the namespace, or name another",
        );
    }
}
