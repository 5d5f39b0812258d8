//! The quota status of a workload, in Rust and in CEL.

use lockkeeper_api::Workload;

const QUOTA_RESERVED: &str = "QuotaReserved";
const ADMITTED: &str = "Admitted";

/// Whether quota is reserved: the condition is true and there is an admission. A condition without an admission is
/// inconsistent, and the controller corrects it.
pub(super) fn has_quota_reserved(workload: &Workload) -> bool {
    let has_admission = |it: &lockkeeper_api::workload::WorkloadStatus| it.admission.is_some();
    workload.status.as_ref().is_some_and(has_admission)
        && has_true_condition(workload, QUOTA_RESERVED)
}

/// Whether quota is reserved and the workload may run.
pub(super) fn is_admitted(workload: &Workload) -> bool {
    has_quota_reserved(workload) && has_true_condition(workload, ADMITTED)
}

fn has_true_condition(workload: &Workload, condition: &str) -> bool {
    let conditions = workload.status.iter().flat_map(|it| &it.conditions);
    let mut of_type = conditions.filter(|it| it.type_ == condition);
    of_type.any(|it| it.status == "True")
}

/// The CEL condition that an object (`self` or `oldSelf`) has a status condition that is true.
fn condition_is_true(object: &str, condition: &str) -> String {
    format!(
        "{object}.status.conditions.exists(it, it.type == '{condition}' && it.status == 'True')"
    )
}

/// [`has_quota_reserved`] in CEL, for an object (`self` or `oldSelf`).
pub(super) fn reserved(object: &str) -> String {
    format!(
        "has({object}.status) && has({object}.status.admission) && has({object}.status.conditions) && {}",
        condition_is_true(object, QUOTA_RESERVED)
    )
}

/// [`is_admitted`] in CEL, for an object (`self` or `oldSelf`).
fn admitted(object: &str) -> String {
    format!(
        "{} && {}",
        reserved(object),
        condition_is_true(object, ADMITTED)
    )
}

/// The transition rule that `unchanged` holds while quota is reserved. Cheap conditions come first: a workload has no
/// status when it is admitted, and most other writes change nothing.
pub(super) fn while_reserved(unchanged: &str) -> String {
    format!(
        "!has(oldSelf.status) || ({unchanged}) || !({}) || !({})",
        reserved("self"),
        reserved("oldSelf")
    )
}

/// The transition rule that `unchanged` holds while the workload is admitted.
pub(super) fn while_admitted(unchanged: &str) -> String {
    format!(
        "!has(oldSelf.status) || ({unchanged}) || !({}) || !({})",
        admitted("self"),
        admitted("oldSelf")
    )
}
