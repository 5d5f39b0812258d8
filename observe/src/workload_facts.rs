//! What the status of a Workload says.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lockkeeper_api::Workload;
use lockkeeper_api::workload::Admission;

/// The condition of a type, if it is true.
pub(crate) fn true_condition<'a>(workload: &'a Workload, of: &str) -> Option<&'a Condition> {
    condition(workload, of).filter(|it| it.status == "True")
}

/// The condition of a type.
pub(crate) fn condition<'a>(workload: &'a Workload, of: &str) -> Option<&'a Condition> {
    let mut conditions = workload.status.iter().flat_map(|it| &it.conditions);
    conditions.find(|it| it.type_ == of)
}

/// Since when a condition has its status, in seconds since 1970.
pub(crate) fn transition_s(condition: &Condition) -> i64 {
    condition.last_transition_time.0.as_second()
}

/// The admission, unless its quota was released. A finished workload keeps it.
pub(crate) fn admission(workload: &Workload) -> Option<&Admission> {
    let is_released = condition(workload, "QuotaReserved").is_some_and(|it| it.status == "False");
    let admission = workload.status.as_ref()?.admission.as_ref()?;
    (!is_released).then_some(admission)
}

/// Whether it has finished.
pub(crate) fn is_finished(workload: &Workload) -> bool {
    true_condition(workload, "Finished").is_some()
}

/// Whether its quota counts as used.
pub(crate) fn has_quota(workload: &Workload) -> bool {
    admission(workload).is_some() && !is_finished(workload)
}

/// Whether it waits for quota.
pub(crate) fn is_pending(workload: &Workload) -> bool {
    admission(workload).is_none() && !is_finished(workload)
}

/// The condition that a preemption sets.
pub(crate) fn preempted(workload: &Workload) -> Option<&Condition> {
    true_condition(workload, "Evicted").filter(|it| it.reason == "Preempted")?;
    true_condition(workload, "Preempted")
}

/// The uid; empty without one.
pub(crate) fn uid(workload: &Workload) -> &str {
    workload.metadata.uid.as_deref().unwrap_or_default()
}
