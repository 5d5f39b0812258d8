//! Where a workload stands: what several rules ask of its status.

use lockkeeper_api::Workload;

/// The conditions of a workload that holds quota, and of one that may run.
const QUOTA_RESERVED: &str = "QuotaReserved";
const ADMITTED: &str = "Admitted";

/// Whether it holds quota, and says so. What says so without an admission holds none, and its controller mends it.
pub(super) fn has_quota_reserved(workload: &Workload) -> bool {
    let has_admission = |it: &lockkeeper_api::workload::WorkloadStatus| it.admission.is_some();
    workload.status.as_ref().is_some_and(has_admission)
        && has_true_condition(workload, QUOTA_RESERVED)
}

/// Whether it holds quota, and may run.
pub(super) fn is_admitted(workload: &Workload) -> bool {
    has_quota_reserved(workload) && has_true_condition(workload, ADMITTED)
}

fn has_true_condition(workload: &Workload, condition: &str) -> bool {
    let conditions = workload.status.iter().flat_map(|it| &it.conditions);
    let mut of_type = conditions.filter(|it| it.type_ == condition);
    of_type.any(|it| it.status == "True")
}

/// Whether an object (`self` or `oldSelf`) has a condition.
macro_rules! has_condition {
    ($object:literal, $condition:literal) => {
        concat!(
            $object,
            ".status.conditions.exists(it, it.type == '",
            $condition,
            "' && it.status == 'True')"
        )
    };
}

/// [`is_reserved`] of an object (`self` or `oldSelf`).
macro_rules! reserved {
    ($object:literal) => {
        concat!(
            "has(",
            $object,
            ".status) && has(",
            $object,
            ".status.admission) && has(",
            $object,
            ".status.conditions) && ",
            has_condition!($object, "QuotaReserved")
        )
    };
}

/// That something stays as it is while quota is reserved. What is cheap is asked first: a workload is admitted when it
/// has no status yet, and by most other writes nothing is changed.
macro_rules! while_reserved {
    ($($same:expr),+) => {
        concat!(
            "!has(oldSelf.status) || (", $($same),+, ") || !(", reserved!("self"), ") || !(", reserved!("oldSelf"), ")"
        )
    };
}

/// That something stays as it is while the workload is admitted.
macro_rules! while_admitted {
    ($($same:expr),+) => {
        concat!(
            "!has(oldSelf.status) || (", $($same),+, ") || !(",
            reserved!("self"), " && ", has_condition!("self", "Admitted"), ") || !(",
            reserved!("oldSelf"), " && ", has_condition!("oldSelf", "Admitted"), ")"
        )
    };
}

pub(super) use {has_condition, reserved, while_admitted, while_reserved};
