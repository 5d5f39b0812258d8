#![doc = include_str!("owner_changed.md")]

use super::{QueuedJob, is_running_change, while_running_cel};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::metadata_cel;
use crate::rule::{Change, Check, Context, Layer, Rule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;

fn cel_rule() -> CelRule {
    let same = format!(
        "{} == {}",
        metadata_cel::controllers("self"),
        metadata_cel::controllers("oldSelf")
    );
    CelRule::new(
        "",
        while_running_cel(&same),
        "the controller of a job must not change while the job is not suspended; set spec.suspend to true first",
    )
    .field_path(".metadata.ownerReferences")
}

/// The rule for a kind of job.
pub(crate) const fn rule<T: QueuedJob>() -> Rule<T> {
    Rule {
        id: "JO003",
        name: "owner-changed-while-running",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &[],
        layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
        doc: include_str!("owner_changed.md"),
        check: Check::Change(check),
    }
}

fn check<T: QueuedJob>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    if is_running_change(change) && controllers(change.old) != controllers(change.new) {
        out.forbidden(
            FieldPath::new("metadata.ownerReferences"),
            "the controller of a job must not change while the job is not suspended; set spec.suspend to true first",
        );
    }
}

/// The fields that identify the controllers of an object.
fn controllers<T: QueuedJob>(job: &T) -> Vec<[&str; 4]> {
    let references = job.meta().owner_references.iter().flatten();
    let of_controllers = references.filter(|it| it.controller == Some(true));
    of_controllers.map(identity).collect()
}

fn identity(owner: &OwnerReference) -> [&str; 4] {
    [&owner.api_version, &owner.kind, &owner.name, &owner.uid]
}
