//! Statistics of the evictions of a workload, `status.schedulingStats`.

use super::conditions::find;
use lockkeeper_api::workload::{EvictionStats, WorkloadStatus};
use lockkeeper_preemption::requeue::EvictionReason;

/// The most entries that the schema permits.
const ENTRIES_MAX: usize = 16;

/// Counts the eviction that the condition `Evicted` of this status describes.
pub(super) fn count_eviction(status: &mut WorkloadStatus) {
    let Some(evicted) = find(&status.conditions, "Evicted") else {
        return;
    };
    let (reason, cause) = EvictionReason::from_reason(&evicted.reason).reason_and_cause();
    let evictions = &mut status.scheduling_stats.get_or_insert_default().evictions;
    if let Some(entry) = evictions.iter_mut().find(|it| is_for(it, reason, cause)) {
        entry.count = entry.count.saturating_add(1);
        return;
    }
    // Only another client can have added so many. An eviction must not be rejected for it.
    if evictions.len() >= ENTRIES_MAX {
        evictions.remove(0);
    }
    evictions.push(EvictionStats {
        reason: reason.to_owned(),
        underlying_cause: cause.to_owned(),
        count: 1,
    });
}

/// Whether the status counts no eviction for this reason.
pub(crate) fn is_first_eviction(status: Option<&WorkloadStatus>, reason: EvictionReason) -> bool {
    let (reason, cause) = reason.reason_and_cause();
    let counted = status.and_then(|it| it.scheduling_stats.as_ref());
    let mut evictions = counted.into_iter().flat_map(|it| &it.evictions);
    !evictions.any(|it| is_for(it, reason, cause))
}

fn is_for(entry: &EvictionStats, reason: &str, cause: &str) -> bool {
    entry.reason == reason && entry.underlying_cause == cause
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES_MAX, count_eviction, is_first_eviction};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use lockkeeper_api::workload::{EvictionStats, WorkloadStatus};
    use lockkeeper_preemption::requeue::{DeactivationCause, EvictionReason};

    fn evicted(status: &mut WorkloadStatus, reason: EvictionReason) {
        let condition: Condition = serde_json::from_value(serde_json::json!({
            "type": "Evicted", "status": "True", "reason": reason.as_str(), "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }))
        .unwrap_or_else(|e| panic!("{e}"));
        status.conditions = vec![condition];
        count_eviction(status);
    }

    fn entries(status: &WorkloadStatus) -> Vec<(&str, &str, i32)> {
        let counted = status.scheduling_stats.as_ref();
        let evictions = counted.into_iter().flat_map(|it| &it.evictions);
        evictions
            .map(|it| (it.reason.as_str(), it.underlying_cause.as_str(), it.count))
            .collect()
    }

    #[test]
    fn evictions_are_counted_by_reason_and_cause() {
        let limit = EvictionReason::Deactivated(Some(DeactivationCause::RequeuingLimitExceeded));
        let mut status = WorkloadStatus::default();
        assert!(is_first_eviction(Some(&status), limit));
        for reason in [
            EvictionReason::Preempted,
            limit,
            EvictionReason::Preempted,
            EvictionReason::Deactivated(None),
        ] {
            evicted(&mut status, reason);
        }
        assert!(!is_first_eviction(Some(&status), limit));
        assert!(is_first_eviction(
            Some(&status),
            EvictionReason::NodeFailures
        ));
        assert_eq!(
            entries(&status),
            [
                ("Preempted", "", 2),
                ("Deactivated", "RequeuingLimitExceeded", 1),
                ("Deactivated", "", 1)
            ]
        );
    }

    #[test]
    fn entries_of_other_clients_do_not_reject_an_eviction() {
        let mut status = WorkloadStatus::default();
        let entry = |number: usize| EvictionStats {
            reason: format!("R{number}"),
            count: 1,
            ..EvictionStats::default()
        };
        status
            .scheduling_stats
            .get_or_insert_default()
            .evictions
            .extend((0..ENTRIES_MAX).map(entry));
        evicted(&mut status, EvictionReason::Preempted);
        let entries = entries(&status);
        assert_eq!(entries.len(), ENTRIES_MAX);
        assert_eq!(entries.last(), Some(&("Preempted", "", 1)));
    }
}
