//! Who was preempted, by whom, and how often.

use super::Thrash;
use crate::names::WorkloadId;
use std::collections::{BTreeMap, BTreeSet};

/// What is remembered of a workload that was preempted, or that preempted others.
#[derive(Clone, Debug, Default)]
struct History {
    /// Who has told it to go, while it has not gone.
    told_by: Option<WorkloadId>,
    /// Who took its place, while that one is there.
    preempted_by: Option<WorkloadId>,
    preemptions: u32,
    /// Whether it was preempted, and has not been admitted since.
    is_out: bool,
    /// Whether it was admitted again after a preemption.
    is_back: bool,
    /// Whom it took.
    took: BTreeSet<WorkloadId>,
    /// The reverse of `told_by`, `preempted_by` and `took`.
    tells: BTreeSet<WorkloadId>,
    replaced: BTreeSet<WorkloadId>,
    taken_by: BTreeSet<WorkloadId>,
}

/// Of all workloads that were preempted or preempted others, and are still there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histories {
    of: BTreeMap<WorkloadId, History>,
    thrash: Thrash,
}

impl Histories {
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(crate) fn thrash(&self) -> Thrash {
        self.thrash
    }

    pub(crate) fn preemptions(&self, id: WorkloadId) -> u32 {
        self.of.get(&id).map_or(0, |it| it.preemptions)
    }

    pub(crate) fn told_by(&self, id: WorkloadId) -> Option<WorkloadId> {
        self.of.get(&id)?.told_by
    }

    /// Whether it took the other before, and that still counts.
    pub(crate) fn has_taken(&self, preemptor: WorkloadId, id: WorkloadId) -> bool {
        self.of
            .get(&preemptor)
            .is_some_and(|it| it.took.contains(&id))
    }

    /// A preemptor tells a running workload to go. It may say so more than once.
    pub(crate) fn tell(&mut self, preemptor: WorkloadId, id: WorkloadId) {
        let before = self.of.entry(id).or_default().told_by.replace(preemptor);
        if before == Some(preemptor) {
            return;
        }
        if let Some(before) = before {
            self.edit(before, |it| it.tells.remove(&id));
        }
        self.of.entry(preemptor).or_default().tells.insert(id);
    }

    pub(crate) fn admitted(&mut self, id: WorkloadId) {
        if let Some(it) = self.of.get_mut(&id)
            && it.is_out
        {
            (it.is_out, it.is_back) = (false, true);
            self.thrash.readmitted = self.thrash.readmitted.saturating_add(1);
        }
    }

    /// A running workload gave its quota back and is still there.
    pub(crate) fn left(&mut self, id: WorkloadId) {
        let Some(it) = self.of.get_mut(&id) else {
            return;
        };
        let Some(preemptor) = it.told_by.take() else {
            // Not preempted. What it does from here on is not what went round.
            (it.is_out, it.is_back) = (false, false);
            self.replace(id, None);
            self.forget(id);
            return;
        };
        it.preemptions = it.preemptions.saturating_add(1);
        let thrash = &mut self.thrash;
        thrash.preempted = thrash.preempted.saturating_add(1);
        if it.is_back {
            thrash.preempted_again = thrash.preempted_again.saturating_add(1);
        }
        (it.is_out, it.is_back) = (true, false);
        it.taken_by.insert(preemptor);
        let taker = self.of.entry(preemptor).or_default();
        taker.tells.remove(&id);
        taker.took.insert(id);
        self.replace(id, Some(preemptor));
    }

    /// Another took what it waited for.
    pub(crate) fn displaced(&mut self, id: WorkloadId, by: WorkloadId) {
        self.of.entry(id).or_default();
        self.replace(id, Some(by));
    }

    /// A workload is no longer there. Who it preempted may go on as if it had not been.
    pub(crate) fn gone(&mut self, id: WorkloadId) {
        self.forget(id);
        self.replace(id, None);
        let Some(it) = self.of.remove(&id) else {
            return;
        };
        for other in it.taken_by {
            self.edit(other, |other| other.took.remove(&id));
        }
        for other in it.tells {
            self.edit(other, |other| other.told_by.take());
        }
        if let Some(by) = it.told_by {
            self.edit(by, |by| by.tells.remove(&id));
        }
        for other in it.replaced {
            self.edit(other, |other| other.preempted_by.take());
            self.forget(other);
        }
    }

    /// Whoever it says so of may take whom it took before.
    pub(crate) fn forget_where(&mut self, mut is_out_of_date: impl FnMut(WorkloadId) -> bool) {
        let ids: Vec<WorkloadId> = self.of.keys().copied().collect();
        for id in ids {
            if is_out_of_date(id) {
                self.forget(id);
            }
        }
    }

    fn forget(&mut self, id: WorkloadId) {
        let took = self.of.get_mut(&id).map(|it| std::mem::take(&mut it.took));
        for other in took.into_iter().flatten() {
            self.edit(other, |other| other.taken_by.remove(&id));
        }
    }

    fn replace(&mut self, id: WorkloadId, by: Option<WorkloadId>) {
        let Some(it) = self.of.get_mut(&id) else {
            return;
        };
        if let Some(before) = std::mem::replace(&mut it.preempted_by, by) {
            self.edit(before, |it| it.replaced.remove(&id));
        }
        if let Some(by) = by {
            self.of.entry(by).or_default().replaced.insert(id);
        }
    }

    fn edit<T>(&mut self, id: WorkloadId, edit: impl FnOnce(&mut History) -> T) {
        if let Some(it) = self.of.get_mut(&id) {
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
        histories.tell(preemptor, id);
        histories.tell(preemptor, id);
        histories.left(id);
        histories.admitted(preemptor);
    }

    #[test]
    fn what_is_undone_again_is_counted() {
        let mut it = Histories::default();
        preempt(&mut it, A, B);
        assert!(it.has_taken(A, B) && !it.has_taken(B, A));
        preempt(&mut it, B, A);
        preempt(&mut it, C, B);
        let thrash = Thrash {
            preempted: 3,
            readmitted: 1,
            preempted_again: 1,
        };
        assert_eq!(it.thrash(), thrash);
        assert_eq!((it.preemptions(A), it.preemptions(B)), (1, 2));
    }

    #[test]
    fn it_is_forgotten_when_one_of_them_is_gone() {
        let mut it = Histories::default();
        preempt(&mut it, A, B);
        it.gone(B);
        assert!(!it.has_taken(A, B));
        preempt(&mut it, A, B);
        it.gone(A);
        assert!(!it.has_taken(A, B));
        it.gone(B);
        assert!(it.is_empty(), "{it:?}");
    }

    #[test]
    fn it_is_forgotten_when_who_took_the_place_is_gone() {
        let mut it = Histories::default();
        preempt(&mut it, A, B);
        preempt(&mut it, C, A);
        assert!(it.has_taken(A, B));
        it.gone(C);
        assert!(!it.has_taken(A, B));
    }

    #[test]
    fn it_is_forgotten_when_the_preemptor_is_evicted_for_another_reason() {
        let mut it = Histories::default();
        preempt(&mut it, A, B);
        it.left(A);
        assert!(!it.has_taken(A, B));
        assert_eq!(it.preemptions(A), 0);
    }

    #[test]
    fn the_last_preemptor_who_told_it_counts() {
        let mut it = Histories::default();
        it.tell(A, C);
        it.tell(B, C);
        it.left(C);
        assert!(!it.has_taken(A, C) && it.has_taken(B, C));
    }
}
