#![doc = include_str!("can_preempt_label_differs.md")]

use crate::facts;
use crate::finding::{Findings, quoted};
use crate::rule::{Check, Context, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::labels::CAN_PREEMPT;

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO005",
    name: "can-preempt-label-differs-from-job",
    since: "0.1.0",
    action: Action::Enforce,
    covers: &[],
    layers: &[Layer::Webhook],
    doc: include_str!("can_preempt_label_differs.md"),
    check: Check::Context(check),
};

fn check(pod: &Pod, context: &Context<'_>, out: &mut Findings) {
    let own = facts::pod_preemption_labels(pod).can_preempt;
    let Some(other) = super::job_pod(pod, context, &|says| says.can_preempt != own) else {
        return;
    };
    let detail = format!(
        "{} this pod trigger preemption, while another pod of job {} {}; one job's pods must agree, so set it \
         to \"{}\"",
        if own { "lets" } else { "does not let" },
        quoted(other.job),
        if own { "may not" } else { "may" },
        !own,
    );
    out.invalid(
        super::label(CAN_PREEMPT),
        super::display_value(pod, CAN_PREEMPT),
        detail,
    );
}
