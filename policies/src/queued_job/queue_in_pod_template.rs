#![doc = include_str!("queue_in_pod_template.md")]

use super::{QueuedJob, is_queued, is_queued_cel};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::batch::v1::Job;
use lockkeeper_api::JobSet;
use lockkeeper_api::config::Action;
use lockkeeper_api::labels::QUEUE_NAME;

const DETAIL: &str = "the pods of a job with a queue use its quota, and the label would queue each of them a second time; remove \
                      the label from the pod template";

/// The CEL condition that the pod template of a Job has the label.
fn template_has_label_cel(object: &str) -> String {
    let mut at = object.to_owned();
    let mut all = Vec::new();
    for step in ["spec", "template", "metadata", "labels"] {
        at = format!("{at}.{step}");
        all.push(format!("has({at})"));
    }
    format!("({} && '{QUEUE_NAME}' in {at})", all.join(" && "))
}

fn cel_rules() -> Vec<CelRule> {
    let rule = CelRule::new(
        "",
        format!(
            "!{} || !{}",
            is_queued_cel("self"),
            template_has_label_cel("self")
        ),
        DETAIL,
    )
    .field_path(".spec.template.metadata.labels")
    .unchanged_when(format!(
        "{} && {}",
        is_queued_cel("oldSelf"),
        template_has_label_cel("oldSelf")
    ));
    vec![rule]
}

/// The rule for Jobs.
pub(crate) const fn rule_of_jobs() -> Rule<Job> {
    rule(&[Layer::Webhook, Layer::Policy(cel_rules)])
}

/// The rule for JobSets. It has no CEL form: a policy on JobSets would read a list of templates of any length.
pub(crate) const fn rule_of_job_sets() -> Rule<JobSet> {
    rule(&[Layer::Webhook])
}

const fn rule<T: QueuedJob>(layers: &'static [Layer]) -> Rule<T> {
    Rule {
        id: "JO005",
        name: "queue-in-pod-template",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &[],
        layers,
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
