#![doc = include_str!("gang_minimum_below_total.md")]

use crate::finding::Findings;
use crate::rule::{Check, Layer, Rule};
use k8s_openapi::api::core::v1::Pod;
use lockkeeper_api::config::Action;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_api::foreign::koordinator::{GANG_MIN_AVAILABLE, GANG_TOTAL_NUMBER};
use lockkeeper_api::labels::JOB;

pub(super) const RULE: Rule<Pod> = Rule {
    id: "PO015",
    name: "gang-minimum-below-total",
    since: "0.1.0",
    action: Action::Warn,
    covers: &["seed-job-min-equals-total"],
    layers: &[Layer::Webhook],
    doc: include_str!("gang_minimum_below_total.md"),
    check: Check::Object(check),
};

fn check(pod: &Pod, out: &mut Findings) {
    let annotations = pod.metadata.annotations.as_ref();
    let value = |key: &str| annotations.and_then(|it| it.get(key)).map(String::as_str);
    let number = |key: &str| value(key).and_then(|it| it.parse::<u32>().ok());
    if super::value(pod, JOB).is_none() {
        return;
    }
    // Koordinator rejects values that are not numbers.
    if let (Some(minimum), Some(total)) = (number(GANG_MIN_AVAILABLE), number(GANG_TOTAL_NUMBER))
        && minimum != total
    {
        out.invalid(
            FieldPath::new("metadata.annotations").key(GANG_MIN_AVAILABLE),
            value(GANG_MIN_AVAILABLE).unwrap_or_default(),
            format!(
                "is not the total number, {total}; a job is preempted for as a whole or not at all, so write {total} \
                 in both"
            ),
        );
    }
}
