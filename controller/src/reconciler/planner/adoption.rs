//! Plans the steps of an adoption (`lockkeeper adopt`).

use crate::key::Kind;
use crate::reconciler::adoption::{AdoptionStep, REQUESTED, annotation, is_adopting, is_annotated};
use crate::reconciler::model::TrackedWorkload;
use crate::reconciler::state::View;

/// Whether the adoption of a workload was given up, or the workload was evicted before the job had its label. Then the job
/// is not in the queue, and runs on without the workload.
pub(crate) fn is_abandoned(view: View<'_>, workload: &TrackedWorkload) -> bool {
    let Some(job) = &workload.job else {
        return false;
    };
    is_annotated(&workload.object)
        && !workload.is_deleted
        && !is_adopting(workload, view.now_ms)
        // Without a complete list, a missing job proves nothing.
        && view.model.lists.is_listed(Kind::Job(job.kind))
        && (view.model.job_of(workload).is_none() || !workload.holds_quota())
}

/// The step of an adoption that the controller has to write, if any.
pub(crate) fn adoption_step(view: View<'_>, workload: &TrackedWorkload) -> Option<AdoptionStep> {
    let known = annotation(&workload.object)?;
    if workload.holds_quota() && view.model.job_of(workload).is_some() {
        Some(AdoptionStep::Complete)
    } else {
        let is_due = known == REQUESTED && view.adoption_holds.is_clear(&workload.key);
        is_due.then_some(AdoptionStep::Observe)
    }
}
