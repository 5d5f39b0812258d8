//! Reports workloads that do not release their quota within a bound after their eviction.

use super::conditions::{epoch_seconds, find, has_status, workload_conditions};
use crate::reconciler::model::TrackedWorkload;
use crate::reconciler::plan::{Action, Plan, WorkloadAction};
use crate::reconciler::state::View;
use lockkeeper_api::Workload;
use lockkeeper_api::workload::WorkloadStatus;
use lockkeeper_cluster_state::EVICTION_STUCK;

/// The reason of the condition.
const JOB_NOT_STOPPED: &str = "JobNotStopped";

/// When the workload counts as stuck, in milliseconds since 1970; `None` if it need not release its quota.
pub(crate) fn stuck_at_ms(view: View<'_>, workload: &TrackedWorkload) -> Option<i64> {
    if !workload.holds_quota() {
        return None;
    }
    let status = workload.object.status.as_ref();
    let conditions = status.map(|it| it.conditions.as_slice());
    let evicted = find(conditions.unwrap_or_default(), "Evicted").filter(|it| it.status == "True");
    let evicted_ms = evicted.map(|it| epoch_seconds(&it.last_transition_time).saturating_mul(1000));
    let since_ms = [evicted_ms, workload.orphaned_since_ms]
        .into_iter()
        .flatten()
        .min()?;
    Some(since_ms.saturating_add(view.settings.stuck_eviction_ms))
}

/// Plans the report of a workload that has to release its quota.
pub(crate) fn plan_report<'a>(view: View<'a>, workload: &TrackedWorkload) -> Plan<'a> {
    match stuck_at_ms(view, workload) {
        Some(at_ms) if at_ms > view.now_ms => Plan::at(at_ms),
        Some(_)
            if !workload.is_deleted && !has_status(&workload.object, EVICTION_STUCK, "True") =>
        {
            Plan::write(Action::Workload(WorkloadAction::ReportStuckEviction))
        }
        _ => Plan::NOTHING,
    }
}

pub(crate) fn write_stuck_eviction(
    view: View<'_>,
    workload: &Workload,
    status: &mut WorkloadStatus,
) {
    let seconds = view.settings.stuck_eviction_ms.div_euclid(1000);
    let message = format!(
        "Quota not released within {seconds} s (controller.stuckEvictionSeconds): the job is not stopped; other \
         workloads are preempted instead. Delete the job and its pods to release the quota"
    );
    let mut conditions = workload_conditions(workload, &mut status.conditions, view.now_ms);
    conditions.set(EVICTION_STUCK, true, JOB_NOT_STOPPED, &message);
}
