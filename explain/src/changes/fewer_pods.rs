//! Fewer pods.

use crate::change::Change;
use crate::trial::{Outcome, Trial};

/// For each pod set, the largest number of its pods with which the workload fits on free quota.
pub(super) fn changes(trial: &mut Trial) -> Vec<Change> {
    let workload = std::sync::Arc::clone(&trial.workload);
    let mut changes = Vec::new();
    for (at, pod_set) in workload.spec.pod_sets.iter().enumerate() {
        let of = pod_set.count.unwrap_or(1);
        let mut fits = |count: i32| {
            let outcome = trial.with_workload(|it| {
                if let Some(pod_set) = it.spec.pod_sets.get_mut(at) {
                    pod_set.count = Some(count);
                    pod_set.min_count = None;
                }
            });
            outcome == Outcome::Fits
        };
        if of < 2 || !fits(1) {
            continue;
        }
        // Fewer pods never fit worse, so a binary search finds the largest number.
        let (mut low, mut high) = (1_i32, of.saturating_sub(1));
        while low < high {
            let middle = low.midpoint(high.saturating_add(1));
            if fits(middle) {
                low = middle;
            } else {
                high = middle.saturating_sub(1);
            }
        }
        changes.push(Change::FewerPods {
            pod_set: pod_set.name().to_owned(),
            count: low,
            of,
        });
    }
    changes
}
