#![doc = include_str!("foreign_controller.md")]

use super::{QueuedJob, is_queued, is_queued_cel};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

/// The violation and its fix. The names of both controllers are in the page.
const DETAIL: &str = "no other controller may manage a job with a queue, because its pods could not be stopped; \
                      leave the field out, or remove the label lockkeeper.dev/queue-name";

fn cel_rules<T: QueuedJob>() -> Vec<CelRule> {
    let own = T::CONTROLLER;
    let queued = is_queued_cel("self");
    let rule = CelRule::new(
        "",
        format!("!{queued} || !has(self.spec) || !has(self.spec.managedBy) || self.spec.managedBy == '{own}'"),
        DETAIL,
    )
    .field_path(".spec.managedBy")
    .unchanged_when(format!(
        "{} && has(oldSelf.spec) && has(oldSelf.spec.managedBy) && self.spec.managedBy == oldSelf.spec.managedBy",
        is_queued_cel("oldSelf")
    ));
    vec![rule]
}

/// The rule for a kind of job.
pub(crate) const fn rule<T: QueuedJob>() -> Rule<T> {
    Rule {
        id: "JO004",
        name: "managed-by-other-controller",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &[],
        layers: &[Layer::Webhook, Layer::Policy(cel_rules::<T>)],
        doc: include_str!("foreign_controller.md"),
        check: Check::Object(check),
    }
}

fn check<T: QueuedJob>(job: &T, out: &mut Findings) {
    if let Some(controller) = job.managed_by().filter(|it| *it != T::CONTROLLER)
        && is_queued(job)
    {
        out.invalid(FieldPath::new("spec.managedBy"), controller, DETAIL);
    }
}
