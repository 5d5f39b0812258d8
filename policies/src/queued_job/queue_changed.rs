#![doc = include_str!("queue_changed.md")]

use super::{
    QueuedJob, is_running_change, label, label_changed, label_changed_cel, label_path,
    while_running_cel,
};
use crate::cel::CelRule;
use crate::finding::Findings;
use crate::metadata_cel::{is_adopted as is_adopted_cel, same_label};
use crate::rule::{Change, Check, Context, Layer, Rule};
use lockkeeper_api::config::Action;
use lockkeeper_api::labels::{ADOPTION, QUEUE_NAME};

/// The remedy for a label that is added to a running job.
const REMEDY: &str = "import a Job with lockkeeper adopt";

fn cel_rule() -> CelRule {
    let holds = format!(
        "({}) || {}",
        same_label("self", "oldSelf", QUEUE_NAME),
        is_adopted_cel("self", "oldSelf")
    );
    CelRule::new(
        "",
        while_running_cel(&holds),
        "field is immutable while the job is not suspended; set spec.suspend to true first",
    )
    .message_expression(label_changed_cel(QUEUE_NAME, REMEDY))
    .field_path(format!(".metadata.labels['{QUEUE_NAME}']"))
}

/// The rule for a kind of job.
pub(crate) const fn rule<T: QueuedJob>() -> Rule<T> {
    Rule {
        id: "JO001",
        name: "queue-changed-while-running",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &["job-queue-name-immutable-running"],
        layers: &[Layer::Webhook, Layer::Policy(|| vec![cel_rule()])],
        doc: include_str!("queue_changed.md"),
        check: Check::Change(check),
    }
}

fn check<T: QueuedJob>(change: &Change<'_, T>, _: &Context<'_>, out: &mut Findings) {
    let (old, new) = (label(change.old, QUEUE_NAME), label(change.new, QUEUE_NAME));
    if old != new && is_running_change(change) && !is_adopted(change) {
        out.invalid(
            label_path(QUEUE_NAME),
            new.unwrap_or_default(),
            label_changed(old, REMEDY),
        );
    }
}

/// Whether `lockkeeper adopt` adds the label: the annotation has the uid of the job, so that a copied manifest does not count.
/// A user who writes the annotation stops the pods of the job, because no quota is reserved for it.
fn is_adopted<T: QueuedJob>(change: &Change<'_, T>) -> bool {
    let metadata = change.new.meta();
    let annotations = metadata.annotations.as_ref();
    let named = annotations.and_then(|it| it.get(ADOPTION));
    label(change.old, QUEUE_NAME).is_none() && named.is_some() && named == metadata.uid.as_ref()
}
