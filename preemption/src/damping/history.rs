//! Who was preempted, by whom, and how often.

use super::stats::RepeatStats;
use crate::ids::WorkloadId;
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered of a workload that was preempted, or that preempted others.
#[derive(Clone, Debug, Default)]
struct History {
    /// Who has told it to go, while it has not gone.
    evicting_preemptor: Option<WorkloadId>,
    /// Who took its place, while that one is there.
    preempted_by: Option<WorkloadId>,
    preemption_count: u32,
    /// Whether it was preempted, and has not been admitted since.
    is_preempted: bool,
    /// Whether it was admitted again after a preemption.
    is_readmitted: bool,
    /// Whom it took.
    victims: BTreeSet<WorkloadId>,
    /// The reverse of `told_by`, `preempted_by` and `took`.
    evicting_victims: BTreeSet<WorkloadId>,
    replaced: BTreeSet<WorkloadId>,
    past_preemptors: BTreeSet<WorkloadId>,
}

/// Of all workloads that were preempted or preempted others, and are still there.
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

    /// Whether it took the other before, and that still counts.
    pub(crate) fn has_preempted(&self, preemptor: WorkloadId, id: WorkloadId) -> bool {
        self.by_workload
            .get(&preemptor)
            .is_some_and(|it| it.victims.contains(&id))
    }

    /// A preemptor tells a running workload to go. It may say so more than once.
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
        if let Some(it) = self.by_workload.get_mut(&id)
            && it.is_preempted
        {
            (it.is_preempted, it.is_readmitted) = (false, true);
            self.repeat_stats.readmitted = self.repeat_stats.readmitted.saturating_add(1);
        }
    }

    /// A running workload gave its quota back and is still there.
    pub(crate) fn record_release(&mut self, id: WorkloadId) {
        let Some(it) = self.by_workload.get_mut(&id) else {
            return;
        };
        let Some(preemptor) = it.evicting_preemptor.take() else {
            // Not preempted. What it does from here on is not what went round.
            (it.is_preempted, it.is_readmitted) = (false, false);
            self.set_preempted_by(id, None);
            self.forget(id);
            return;
        };
        it.preemption_count = it.preemption_count.saturating_add(1);
        let repeats = &mut self.repeat_stats;
        repeats.preempted = repeats.preempted.saturating_add(1);
        if it.is_readmitted {
            repeats.preempted_again = repeats.preempted_again.saturating_add(1);
        }
        (it.is_preempted, it.is_readmitted) = (true, false);
        it.past_preemptors.insert(preemptor);
        let taker = self.by_workload.entry(preemptor).or_default();
        taker.evicting_victims.remove(&id);
        taker.victims.insert(id);
        self.set_preempted_by(id, Some(preemptor));
    }

    /// Another took what it waited for.
    pub(crate) fn record_displacement(&mut self, id: WorkloadId, by: WorkloadId) {
        self.by_workload.entry(id).or_default();
        self.set_preempted_by(id, Some(by));
    }

    /// A workload is no longer there. Who it preempted may go on as if it had not been.
    pub(crate) fn remove_workload(&mut self, id: WorkloadId) {
        self.forget(id);
        self.set_preempted_by(id, None);
        let Some(it) = self.by_workload.remove(&id) else {
            return;
        };
        for other in it.past_preemptors {
            self.edit(other, |other| other.victims.remove(&id));
        }
        for other in it.evicting_victims {
            self.edit(other, |other| other.evicting_preemptor.take());
        }
        if let Some(by) = it.evicting_preemptor {
            self.edit(by, |by| by.evicting_victims.remove(&id));
        }
        for other in it.replaced {
            self.edit(other, |other| other.preempted_by.take());
            self.forget(other);
        }
    }

    /// Whoever it says so of may take whom it took before.
    pub(crate) fn forget_where(&mut self, mut is_out_of_date: impl FnMut(WorkloadId) -> bool) {
        let ids: Vec<WorkloadId> = self.by_workload.keys().copied().collect();
        for id in ids {
            if is_out_of_date(id) {
                self.forget(id);
            }
        }
    }

    fn forget(&mut self, id: WorkloadId) {
        let took = self
            .by_workload
            .get_mut(&id)
            .map(|it| std::mem::take(&mut it.victims));
        for other in took.into_iter().flatten() {
            self.edit(other, |other| other.past_preemptors.remove(&id));
        }
    }

    fn set_preempted_by(&mut self, id: WorkloadId, by: Option<WorkloadId>) {
        let Some(it) = self.by_workload.get_mut(&id) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut it.preempted_by, by) {
            self.edit(before, |it| it.replaced.remove(&id));
        }
        if let Some(by) = by {
            self.by_workload.entry(by).or_default().replaced.insert(id);
        }
    }

    fn edit<T>(&mut self, id: WorkloadId, edit: impl FnOnce(&mut History) -> T) {
        if let Some(it) = self.by_workload.get_mut(&id) {
            edit(it);
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
        let mut it = Histories::default();
        preempt(&mut it, A, B);
        assert!(it.has_preempted(A, B) && !it.has_preempted(B, A));
        preempt(&mut it, B, A);
        preempt(&mut it, C, B);
        let repeats = RepeatStats {
            preempted: 3,
            readmitted: 1,
            preempted_again: 1,
        };
        assert_eq!(it.repeat_stats(), repeats);
        assert_eq!((it.preemption_count(A), it.preemption_count(B)), (1, 2));
    }

    #[test]
    fn history_after_workload_removal_is_forgotten() {
        let mut it = Histories::default();
        preempt(&mut it, A, B);
        it.remove_workload(B);
        assert!(!it.has_preempted(A, B));
        preempt(&mut it, A, B);
        it.remove_workload(A);
        assert!(!it.has_preempted(A, B));
        it.remove_workload(B);
        assert!(it.is_empty(), "{it:?}");
    }

    #[test]
    fn history_after_replacement_removal_is_forgotten() {
        let mut it = Histories::default();
        preempt(&mut it, A, B);
        preempt(&mut it, C, A);
        assert!(it.has_preempted(A, B));
        it.remove_workload(C);
        assert!(!it.has_preempted(A, B));
    }

    #[test]
    fn history_after_other_eviction_of_preemptor_is_forgotten() {
        let mut it = Histories::default();
        preempt(&mut it, A, B);
        it.record_release(A);
        assert!(!it.has_preempted(A, B));
        assert_eq!(it.preemption_count(A), 0);
    }

    #[test]
    fn history_with_two_preemptors_keeps_the_last() {
        let mut it = Histories::default();
        it.record_preemption(A, C);
        it.record_preemption(B, C);
        it.record_release(C);
        assert!(!it.has_preempted(A, C) && it.has_preempted(B, C));
    }
}
