#![doc = include_str!("queue_in_pod_template.md")]

use super::{QueuedJob, is_queued, is_queued_cel};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::labels::QUEUE_NAME;

const DETAIL: &str = "the pods of a job with a queue use its quota, and the label would queue each of them a second time; remove \
                      the label from the pod template";

fn cel_rules<T: QueuedJob>() -> Vec<CelRule> {
    let has_label = T::pod_template_has_label_cel("self", QUEUE_NAME);
    let had_label = T::pod_template_has_label_cel("oldSelf", QUEUE_NAME);
    let rule = CelRule::new(
        "",
        format!("!{} || !({has_label})", is_queued_cel("self")),
        DETAIL,
    )
    .field_path(".spec")
    .unchanged_when(format!("{} && ({had_label})", is_queued_cel("oldSelf")));
    vec![rule]
}

/// The rule for a kind of job.
pub(crate) const fn rule<T: QueuedJob>() -> Rule<T> {
    Rule {
        id: "JO005",
        name: "queue-in-pod-template",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &[],
        layers: &[Layer::Webhook, Layer::Policy(cel_rules::<T>)],
        doc: include_str!("queue_in_pod_template.md"),
        check: Check::Object(check),
    }
}

fn check<T: QueuedJob>(job: &T, out: &mut Findings) {
    if !is_queued(job) {
        return;
    }
    for (path, labels) in job.pod_template_labels() {
        if let Some(queue) = labels.get(QUEUE_NAME) {
            out.invalid(path.key(QUEUE_NAME), queue.as_str(), DETAIL);
        }
    }
}
