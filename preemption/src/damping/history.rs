//! Preemption history: the preemptors and victims of each workload, and how often it was preempted.

use super::stats::RepeatStats;
use crate::ids::WorkloadId;
use std::collections::{BTreeMap, BTreeSet};

/// The preemption history of one workload, as a victim and as a preemptor.
#[derive(Clone, Debug, Default)]
struct History {
    /// The preemptor that it is being evicted for, until it releases its quota.
    evicting_preemptor: Option<WorkloadId>,
    /// The workload that preempted or displaced it last, as long as that workload exists.
    preempted_by: Option<WorkloadId>,
    preemption_count: u32,
    /// Whether it was preempted, and has not been admitted since.
    is_preempted: bool,
    /// Whether it was admitted again after a preemption.
    is_readmitted: bool,
    /// The workloads that it has preempted.
    victims: BTreeSet<WorkloadId>,
    /// The reverse of `evicting_preemptor`.
    evicting_victims: BTreeSet<WorkloadId>,
    /// The reverse of `preempted_by`.
    replaced: BTreeSet<WorkloadId>,
    /// The reverse of `victims`.
    past_preemptors: BTreeSet<WorkloadId>,
}

/// The histories of all existing workloads that were preempted or preempted others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histories {
    by_workload: BTreeMap<WorkloadId, History>,
    repeat_stats: RepeatStats,
}

impl Histories {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_workload.is_empty()
    }

    pub(crate) fn repeat_stats(&self) -> RepeatStats {
        self.repeat_stats
    }

    pub(crate) fn preemption_count(&self, id: WorkloadId) -> u32 {
        self.by_workload
            .get(&id)
            .map_or(0, |it| it.preemption_count)
    }

    pub(crate) fn evicting_preemptor(&self, id: WorkloadId) -> Option<WorkloadId> {
        self.by_workload.get(&id)?.evicting_preemptor
    }

    /// Returns whether `preemptor` has preempted `id` and the history was not dropped since.
    pub(crate) fn has_preempted(&self, preemptor: WorkloadId, id: WorkloadId) -> bool {
        self.by_workload
            .get(&preemptor)
            .is_some_and(|it| it.victims.contains(&id))
    }

    /// Records that a preemptor evicts an admitted workload. A repeated call changes nothing.
    pub(crate) fn record_preemption(&mut self, preemptor: WorkloadId, id: WorkloadId) {
        let before = self
            .by_workload
            .entry(id)
            .or_default()
            .evicting_preemptor
            .replace(preemptor);
        if before == Some(preemptor) {
            return;
        }
        // Another preemptor has selected the same victim; only the last one counts.
        if let Some(before) = before {
            self.edit(before, |it| it.evicting_victims.remove(&id));
        }
        self.by_workload
            .entry(preemptor)
            .or_default()
            .evicting_victims
            .insert(id);
    }

    pub(crate) fn record_admission(&mut self, id: WorkloadId) {
        if let Some(history) = self.by_workload.get_mut(&id)
            && history.is_preempted
        {
            (history.is_preempted, history.is_readmitted) = (false, true);
            self.repeat_stats.readmitted = self.repeat_stats.readmitted.saturating_add(1);
        }
    }

    /// Records that an admitted workload has released its quota without being removed.
    pub(crate) fn record_release(&mut self, id: WorkloadId) {
        let Some(history) = self.by_workload.get_mut(&id) else {
            return;
        };
        let Some(preemptor) = history.evicting_preemptor.take() else {
            // It was not preempted, so its later preemptions do not continue a loop.
            (history.is_preempted, history.is_readmitted) = (false, false);
            self.set_preempted_by(id, None);
            self.drop_victims(id);
            return;
        };
        history.preemption_count = history.preemption_count.saturating_add(1);
        let repeats = &mut self.repeat_stats;
        repeats.preempted = repeats.preempted.saturating_add(1);
        if history.is_readmitted {
            repeats.preempted_again = repeats.preempted_again.saturating_add(1);
        }
        (history.is_preempted, history.is_readmitted) = (true, false);
        history.past_preemptors.insert(preemptor);
        let preemptor_history = self.by_workload.entry(preemptor).or_default();
        preemptor_history.evicting_victims.remove(&id);
        preemptor_history.victims.insert(id);
        self.set_preempted_by(id, Some(preemptor));
    }

    /// Records that another workload has displaced this one, and uses the quota held for it.
    pub(crate) fn record_displacement(&mut self, id: WorkloadId, by: WorkloadId) {
        self.by_workload.entry(id).or_default();
        self.set_preempted_by(id, Some(by));
    }

    /// Removes a workload. The workloads that it has preempted may preempt again without restriction.
    pub(crate) fn remove_workload(&mut self, id: WorkloadId) {
        self.drop_victims(id);
        self.set_preempted_by(id, None);
        let Some(history) = self.by_workload.remove(&id) else {
            return;
        };
        for other in history.past_preemptors {
            self.edit(other, |other| other.victims.remove(&id));
        }
        for other in history.evicting_victims {
            self.edit(other, |other| other.evicting_preemptor.take());
        }
        if let Some(by) = history.evicting_preemptor {
            self.edit(by, |by| by.evicting_victims.remove(&id));
        }
        for other in history.replaced {
            self.edit(other, |other| other.preempted_by.take());
            // Its preemptor no longer exists, so preempting its victims again starts no loop.
            self.drop_victims(other);
        }
    }

    /// Drops the recorded victims of the workloads for which `is_out_of_date` is true.
    pub(crate) fn drop_victims_where(
        &mut self,
        mut is_out_of_date: impl FnMut(WorkloadId) -> bool,
    ) {
        let ids: Vec<WorkloadId> = self.by_workload.keys().copied().collect();
        for id in ids {
            if is_out_of_date(id) {
                self.drop_victims(id);
            }
        }
    }

    fn drop_victims(&mut self, id: WorkloadId) {
        let victims = self
            .by_workload
            .get_mut(&id)
            .map(|it| std::mem::take(&mut it.victims));
        for other in victims.into_iter().flatten() {
            self.edit(other, |other| other.past_preemptors.remove(&id));
        }
    }

    fn set_preempted_by(&mut self, id: WorkloadId, by: Option<WorkloadId>) {
        let Some(history) = self.by_workload.get_mut(&id) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut history.preempted_by, by) {
            self.edit(before, |it| it.replaced.remove(&id));
        }
        if let Some(by) = by {
            self.by_workload.entry(by).or_default().replaced.insert(id);
        }
    }

    fn edit<T>(&mut self, id: WorkloadId, edit: impl FnOnce(&mut History) -> T) {
        if let Some(history) = self.by_workload.get_mut(&id) {
            edit(history);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WorkloadId = WorkloadId(1);
    const B: WorkloadId = WorkloadId(2);
    const C: WorkloadId = WorkloadId(3);

    fn preempt(histories: &mut Histories, preemptor: WorkloadId, id: WorkloadId) {
        histories.record_preemption(preemptor, id);
        histories.record_preemption(preemptor, id);
        histories.record_release(id);
        histories.record_admission(preemptor);
    }

    #[test]
    fn repeat_stats_after_readmission_count_repeats() {
        let mut histories = Histories::default();
        preempt(&mut histories, A, B);
        assert!(histories.has_preempted(A, B) && !histories.has_preempted(B, A));
        preempt(&mut histories, B, A);
        preempt(&mut histories, C, B);
        let repeats = RepeatStats {
            preempted: 3,
            readmitted: 1,
            preempted_again: 1,
        };
        assert_eq!(histories.repeat_stats(), repeats);
        assert_eq!(
            (histories.preemption_count(A), histories.preemption_count(B)),
            (1, 2)
        );
    }

    #[test]
    fn history_after_workload_removal_is_dropped() {
        let mut histories = Histories::default();
        preempt(&mut histories, A, B);
        histories.remove_workload(B);
        assert!(!histories.has_preempted(A, B));
        preempt(&mut histories, A, B);
        histories.remove_workload(A);
        assert!(!histories.has_preempted(A, B));
        histories.remove_workload(B);
        assert!(histories.is_empty(), "{histories:?}");
    }

    #[test]
    fn history_after_replacement_removal_is_dropped() {
        let mut histories = Histories::default();
        preempt(&mut histories, A, B);
        preempt(&mut histories, C, A);
        assert!(histories.has_preempted(A, B));
        histories.remove_workload(C);
        assert!(!histories.has_preempted(A, B));
    }

    #[test]
    fn history_after_other_eviction_of_preemptor_is_dropped() {
        let mut histories = Histories::default();
        preempt(&mut histories, A, B);
        histories.record_release(A);
        assert!(!histories.has_preempted(A, B));
        assert_eq!(histories.preemption_count(A), 0);
    }

    #[test]
    fn history_with_two_preemptors_keeps_the_last() {
        let mut histories = Histories::default();
        histories.record_preemption(A, C);
        histories.record_preemption(B, C);
        histories.record_release(C);
        assert!(!histories.has_preempted(A, C) && histories.has_preempted(B, C));
    }
}
