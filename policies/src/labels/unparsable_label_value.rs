#![doc = include_str!("unparsable_label_value.md")]

use crate::finding::Findings;
use crate::name_validation;
use crate::rule::{Check, Layer, Rule};
use crate::validated_kind::ValidatedKind;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::labels::{
    DISRUPTION_MODE, MAX_EXECUTION_TIME, MIN_PARALLELISM, POD_GROUP_TOTAL_COUNT,
    PREEMPTION_PRIORITY_CLASS, PRIORITY_CLASS, QUEUE_NAME,
};

/// The values of the disruption unit.
const MODES: [&str; 2] = ["Pod", "PodGroup"];

/// The rule for jobs that lockkeeper starts.
pub(crate) const fn rule<T: ValidatedKind>() -> Rule<T> {
    Rule {
        id: "LA003",
        name: "unparsable-label-value",
        since: "0.1.0",
        action: Action::Enforce,
        covers: &["job-queue-name-format", "job-max-exec-time-positive"],
        layers: &[Layer::Webhook],
        doc: include_str!("unparsable_label_value.md"),
        check: Check::Object(check),
    }
}

fn check<T: ValidatedKind>(job: &T, out: &mut Findings) {
    let labels = job.meta().labels.as_ref();
    let label = |key: &str| labels.and_then(|it| it.get(key));
    for key in [QUEUE_NAME, PRIORITY_CLASS, PREEMPTION_PRIORITY_CLASS] {
        let Some(name) = label(key) else { continue };
        for fault in name_validation::dns_subdomain(name) {
            out.invalid(key_path("labels", key), name, fault);
        }
    }
    if let Some(time) = label(MAX_EXECUTION_TIME).filter(|it| !is_count(it)) {
        out.invalid(
            key_path("labels", MAX_EXECUTION_TIME),
            time,
            "must be a whole number of seconds from 1 to 2147483647",
        );
    }
    if let Some(mode) = label(DISRUPTION_MODE).filter(|it| !MODES.contains(&it.as_str())) {
        out.not_supported(key_path("labels", DISRUPTION_MODE), mode, &MODES);
    }
    let annotations = job.meta().annotations.as_ref();
    for key in [MIN_PARALLELISM, POD_GROUP_TOTAL_COUNT] {
        let pods = annotations.and_then(|it| it.get(key));
        if let Some(pods) = pods.filter(|it| !is_count(it)) {
            out.invalid(
                key_path("annotations", key),
                pods,
                "must be a whole number of pods from 1 to 2147483647",
            );
        }
    }
}

fn key_path(map: &'static str, key: &'static str) -> FieldPath {
    FieldPath::new("metadata").field(map).key(key)
}

/// Whether a value parses as a count.
fn is_count(text: &str) -> bool {
    text.parse::<i32>().is_ok_and(|it| it > 0)
}
