#![doc = include_str!("disruption_mode_unused.md")]

use super::{Submission, queues};
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels::DISRUPTION_MODE;

/// The rule for a kind of job.
pub(crate) const fn rule<T: Submission>() -> Rule<T> {
    Rule {
        id: "LA010",
        name: "disruption-mode-unused",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("disruption_mode_unused.md"),
        check: Check::Context(check::<T>),
    }
}

fn check<T: Submission>(job: &T, context: &Context<'_>, out: &mut Findings) {
    let labels = job.meta().labels.as_ref();
    let mode = labels.and_then(|it| it.get(DISRUPTION_MODE));
    // The other mode is what the controller does anyway; another value is an error of its own (LA003).
    let Some(mode) = mode.filter(|it| it.as_str() == "Pod") else {
        return;
    };
    let Some(queues) = queues(job, context) else {
        return;
    };
    if queues.cluster_queue_facts.places_on_nodes {
        return;
    }
    let queue = quoted(queues.cluster_queue());
    out.invalid(
        FieldPath::new("metadata.labels").key(DISRUPTION_MODE),
        mode,
        format!("has no effect in ClusterQueue {queue}, which does not place workloads on nodes"),
    );
}
