//! Adoption: `lockkeeper adopt` imports a running job, which gets its queue label last.
//!
//! The command creates the workload of the job with an annotation, writes the admission, and labels the job. The watch of
//! jobs does not show the job before the label, and the watch of workloads may show the admission after it. The annotation
//! keeps the workload, and its job running, in between. Only the controller's account may set it.

use super::model::{TrackedWorkload, holds_quota};
use super::output::WriteOp;
use super::status::conditions::{epoch_seconds, has_status};
use lockkeeper_api::{Workload, labels};
use serde_json::{Value, json};

/// The longest time from the creation of the workload to the label of the job, in milliseconds. Then the workload of an
/// interrupted adoption is deleted, so that it does not hold quota for ever.
const ADOPTION_MAX_MS: i64 = 3_600_000;

/// The annotation of a workload that `lockkeeper adopt` has created.
pub(super) const REQUESTED: &str = "Requested";

/// The annotation of a workload that the controller knows: the job may get its label.
pub(super) const OBSERVED: &str = "Observed";

/// A step of an adoption that the controller writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdoptionStep {
    /// Report that the controller knows the workload.
    Observe,
    /// Remove the annotation: the job has its label.
    Complete,
}

/// Whether a workload has the annotation, in any state.
pub(super) fn is_annotated(workload: &Workload) -> bool {
    annotation(workload).is_some()
}

/// The annotation of a workload: how far its adoption is.
pub(super) fn annotation(workload: &Workload) -> Option<&str> {
    let all = workload.metadata.annotations.as_ref()?;
    all.get(labels::ADOPTION).map(String::as_str)
}

/// Whether a workload that is being adopted has no quota yet, by its object alone.
pub(crate) fn needs_quota(workload: &Workload) -> bool {
    is_annotated(workload) && !holds_quota(workload) && !has_status(workload, "Evicted", "True")
}

/// When the adoption of a workload has to be complete, in milliseconds since 1970; `None` if it is no such workload, or was
/// evicted.
pub(super) fn adoption_end_ms(workload: &TrackedWorkload) -> Option<i64> {
    let is_alive = workload.should_run() || !workload.holds_quota() && !workload.is_evicted();
    if !is_annotated(&workload.object) || !is_alive {
        return None;
    }
    let created = workload.object.metadata.creation_timestamp.as_ref()?;
    let created_ms = epoch_seconds(created).saturating_mul(1000);
    Some(created_ms.saturating_add(ADOPTION_MAX_MS))
}

/// Whether a workload is being adopted: it needs no job in the watch yet, and a running job may wait for its quota.
pub(super) fn is_adopting(workload: &TrackedWorkload, now_ms: i64) -> bool {
    adoption_end_ms(workload).is_some_and(|end_ms| now_ms < end_ms)
}

/// The write of a step.
pub(super) fn adoption_write(workload: &Workload, step: AdoptionStep) -> WriteOp {
    let value = match step {
        AdoptionStep::Observe => json!(OBSERVED),
        AdoptionStep::Complete => Value::Null,
    };
    WriteOp::Patch(json!({"metadata": {
        "resourceVersion": workload.metadata.resource_version,
        "annotations": {labels::ADOPTION: value},
    }}))
}
