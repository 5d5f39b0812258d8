#![doc = include_str!("disruption_mode_unused.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels::DISRUPTION_MODE;

/// The rule for jobs that lockkeeper starts.
pub(crate) const fn rule<T: ValidatedKind>() -> Rule<T> {
    Rule {
        id: "LA010",
        name: "disruption-mode-unused",
        since: "0.1.0",
        action: Action::Warn,
        covers: &[],
        layers: &[Layer::Webhook],
        doc: include_str!("disruption_mode_unused.md"),
        check: Check::Object(check),
    }
}

fn check<T: ValidatedKind>(job: &T, out: &mut Findings) {
    let labels = job.meta().labels.as_ref();
    let mode = labels.and_then(|it| it.get(DISRUPTION_MODE));
    // Another value is an error of its own (LA003).
    if let Some(mode) = mode.filter(|it| matches!(it.as_str(), "Pod" | "PodGroup")) {
        out.invalid(
            FieldPath::new("metadata.labels").key(DISRUPTION_MODE),
            mode,
            "has no effect: a job is preempted as a whole; remove the label",
        );
    }
}
