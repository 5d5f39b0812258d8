#![doc = include_str!("manual_selector.md")]

use super::{is_queued, is_queued_cel};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::batch::v1::Job;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

const DETAIL: &str = "the pods of a job with a queue need the labels that Kubernetes generates, by which they are found when the job is \
                      gone; leave manualSelector and selector out";

/// The CEL condition that a Job selects its pods itself.
fn is_manual_cel(object: &str) -> String {
    format!(
        "(has({object}.spec) && has({object}.spec.manualSelector) && {object}.spec.manualSelector)"
    )
}

fn cel_rules() -> Vec<CelRule> {
    let rule = CelRule::new(
        "",
        format!("!{} || !{}", is_queued_cel("self"), is_manual_cel("self")),
        DETAIL,
    )
    .field_path(".spec.manualSelector")
    .unchanged_when(format!(
        "{} && {}",
        is_queued_cel("oldSelf"),
        is_manual_cel("oldSelf")
    ));
    vec![rule]
}

/// The rule for Jobs. JobSet adds labels of its own to the pods of its Jobs.
pub(crate) const fn rule() -> Rule<Job> {
    Rule {
        id: "JO006",
        name: "manual-selector",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &[],
        layers: &[Layer::Webhook, Layer::Policy(cel_rules)],
        doc: include_str!("manual_selector.md"),
        check: Check::Object(check),
    }
}

fn check(job: &Job, out: &mut Findings) {
    let is_manual = job.spec.as_ref().and_then(|it| it.manual_selector) == Some(true);
    if is_manual && is_queued(job) {
        out.forbidden(FieldPath::new("spec.manualSelector"), DETAIL);
    }
}
