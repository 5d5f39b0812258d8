//! The workloads by id.

use crate::admitted::AdmittedLookup;
use crate::admitted::AdmittedWorkload;
use crate::assignment::PodSet;
use crate::candidate_list::UidLookup;
use crate::ids::{NodeId, WorkloadId};
use crate::job::PreemptionLabels;
use crate::known_nomination::KnownNomination;
use crate::queue::{EquivalenceClass, LastAssignment, QueueKey};
use std::cmp::Reverse;
use std::sync::Arc;

/// One workload.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadRow {
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
    pub(crate) queue: NodeId,
    pub(crate) priority: i32,
    /// At least the priority, see [`crate::admitted`].
    pub(crate) preemption_priority: i32,
    pub(crate) order_time: i64,
    pub(crate) waiting_since_s: i64,
    /// The most seconds that it runs once it is admitted; [`NO_END`](crate::admitted::NO_END) if there is no limit.
    pub(crate) execution_time_max_s: i64,
    pub(crate) pod_sets: Arc<[PodSet]>,
    /// Equal for equal pod sets.
    pub(crate) pod_sets_id: u64,
    pub(crate) is_in_scope: bool,
    pub(crate) preemption_labels: PreemptionLabels,
    pub(crate) backoff_until_s: Option<i64>,
    pub(crate) last_assignment: Option<Box<LastAssignment>>,
    /// Its last nomination as a head.
    pub(crate) nomination: Option<Box<KnownNomination>>,
    pub(crate) admitted: Option<AdmittedWorkload>,
}

impl WorkloadRow {
    pub(crate) fn queue_key(&self, id: WorkloadId) -> QueueKey {
        QueueKey {
            priority: Reverse(self.priority),
            order_time: self.order_time,
            uid: Arc::clone(&self.uid),
            id,
        }
    }

    pub(crate) fn equivalence_class(&self) -> EquivalenceClass {
        EquivalenceClass {
            pod_sets_id: self.pod_sets_id,
            priority: self.priority,
            labels: self.preemption_labels,
            is_in_scope: self.is_in_scope,
        }
    }
}

/// The number of rows of a page.
const PAGE_SIZE: usize = 512;

/// The workloads by id, in pages: an insertion never moves all rows, nor doubles the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkloadTable {
    /// All full but the last.
    pages: Vec<Vec<Option<WorkloadRow>>>,
    free: Vec<WorkloadId>,
}

impl WorkloadTable {
    fn slot(&self, id: WorkloadId) -> Option<&Option<WorkloadRow>> {
        self.pages
            .get(id.index() / PAGE_SIZE)?
            .get(id.index() % PAGE_SIZE)
    }

    fn slot_mut(&mut self, id: WorkloadId) -> Option<&mut Option<WorkloadRow>> {
        let page = self.pages.get_mut(id.index() / PAGE_SIZE)?;
        page.get_mut(id.index() % PAGE_SIZE)
    }

    pub(crate) fn get(&self, id: WorkloadId) -> Option<&WorkloadRow> {
        self.slot(id)?.as_ref()
    }

    /// Iterates over all workloads in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WorkloadId, &WorkloadRow)> {
        let all = self.pages.iter().flatten().enumerate();
        all.filter_map(|(at, row)| Some((WorkloadId::of(at), row.as_ref()?)))
    }

    pub(crate) fn get_mut(&mut self, id: WorkloadId) -> Option<&mut WorkloadRow> {
        self.slot_mut(id)?.as_mut()
    }

    pub(crate) fn insert(&mut self, row: WorkloadRow) -> WorkloadId {
        if let Some(id) = self.free.pop()
            && let Some(slot) = self.slot_mut(id)
        {
            *slot = Some(row);
            return id;
        }
        if self.pages.last().is_none_or(|page| page.len() >= PAGE_SIZE) {
            self.pages.push(Vec::new());
        }
        let before = self.pages.len().saturating_sub(1).saturating_mul(PAGE_SIZE);
        let Some(page) = self.pages.last_mut() else {
            // Not reached: the last page exists.
            return WorkloadId::of(usize::MAX);
        };
        page.push(Some(row));
        WorkloadId::of(before.saturating_add(page.len()).saturating_sub(1))
    }

    pub(crate) fn remove(&mut self, id: WorkloadId) -> Option<WorkloadRow> {
        let row = self.slot_mut(id)?.take()?;
        // The id is used again: callers have to drop all references to it first.
        self.free.push(id);
        Some(row)
    }
}

impl UidLookup for WorkloadTable {
    fn uid(&self, id: WorkloadId) -> &str {
        self.get(id).map_or("", |row| &row.uid)
    }
}

impl AdmittedLookup for WorkloadTable {
    fn admitted(&self, id: WorkloadId) -> Option<&AdmittedWorkload> {
        self.get(id)?.admitted.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE_SIZE, PreemptionLabels};
    use crate::{State, WorkloadSpec};

    #[test]
    fn workload_table_ids_are_stable_over_pages_and_reused() {
        let mut state = State::default();
        let add = |state: &mut State, at: usize| {
            let name = format!("{at:05}");
            state.add_pending(WorkloadSpec {
                name: &name,
                uid: &name,
                queue: "a",
                priority: 0,
                preemption_priority: None,
                order_time: 0,
                waiting_since_s: 0,
                pod_sets: Vec::new(),
                is_in_scope: true,
                preemption_labels: PreemptionLabels::default(),
            })
        };
        let count = PAGE_SIZE * 2 + 1;
        let mut ids: Vec<_> = (0..count).map(|at| (at, add(&mut state, at))).collect();
        for (at, id) in ids.iter_mut().step_by(3) {
            state.remove(*id);
            assert_eq!(state.workload_name(*id), "");
            *at += count;
        }
        for (at, id) in ids.iter_mut().step_by(3) {
            *id = add(&mut state, *at);
            assert!(id.index() < count);
        }
        for (at, id) in &ids {
            assert_eq!(state.workload_name(*id), format!("{at:05}"));
        }
        ids.sort_unstable_by_key(|(_, id)| *id);
        ids.dedup_by_key(|(_, id)| *id);
        assert_eq!(ids.len(), count);
    }
}
