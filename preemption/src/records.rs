//! The workloads by their numbers.

use crate::assignment::PodSet;
use crate::job::Says;
use crate::names::{NodeId, WorkloadId};
use crate::queue::{Class, Place, Progress};
use crate::ranked::Uids;
use crate::running::Running;
use crate::running::Workloads;
use std::cmp::Reverse;
use std::sync::Arc;

/// A workload that is known.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
    pub(crate) queue: NodeId,
    pub(crate) priority: i32,
    pub(crate) order_time: i64,
    pub(crate) pod_sets: Arc<[PodSet]>,
    /// Equal for equal pod sets.
    pub(crate) shape: u64,
    pub(crate) is_in_scope: bool,
    pub(crate) says: Says,
    pub(crate) held_until_s: Option<i64>,
    pub(crate) progress: Option<Box<Progress>>,
    pub(crate) running: Option<Running>,
}

impl Record {
    pub(crate) fn place(&self, id: WorkloadId) -> Place {
        Place {
            priority: Reverse(self.priority),
            order_time: self.order_time,
            uid: Arc::clone(&self.uid),
            id,
        }
    }

    pub(crate) fn class(&self) -> Class {
        (self.shape, self.priority, self.says)
    }
}

/// How many records lie together.
const PAGE: usize = 512;

/// The workloads by their numbers. They lie in pages: one more never moves all others, nor takes room
/// for as many again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    /// All full but the last.
    pages: Vec<Vec<Option<Record>>>,
    free: Vec<WorkloadId>,
}

impl Records {
    fn slot(&self, id: WorkloadId) -> Option<&Option<Record>> {
        self.pages.get(id.index() / PAGE)?.get(id.index() % PAGE)
    }

    fn slot_mut(&mut self, id: WorkloadId) -> Option<&mut Option<Record>> {
        let page = self.pages.get_mut(id.index() / PAGE)?;
        page.get_mut(id.index() % PAGE)
    }

    pub(crate) fn get(&self, id: WorkloadId) -> Option<&Record> {
        self.slot(id)?.as_ref()
    }

    /// All, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WorkloadId, &Record)> {
        let all = self.pages.iter().flatten().enumerate();
        all.filter_map(|(at, record)| Some((WorkloadId::of(at), record.as_ref()?)))
    }

    pub(crate) fn get_mut(&mut self, id: WorkloadId) -> Option<&mut Record> {
        self.slot_mut(id)?.as_mut()
    }

    pub(crate) fn insert(&mut self, record: Record) -> WorkloadId {
        if let Some(id) = self.free.pop()
            && let Some(slot) = self.slot_mut(id)
        {
            *slot = Some(record);
            return id;
        }
        if self.pages.last().is_none_or(|page| page.len() >= PAGE) {
            self.pages.push(Vec::new());
        }
        let before = self.pages.len().saturating_sub(1).saturating_mul(PAGE);
        let Some(page) = self.pages.last_mut() else {
            return WorkloadId::of(usize::MAX);
        };
        page.push(Some(record));
        WorkloadId::of(before.saturating_add(page.len()).saturating_sub(1))
    }

    pub(crate) fn remove(&mut self, id: WorkloadId) -> Option<Record> {
        let record = self.slot_mut(id)?.take()?;
        self.free.push(id);
        Some(record)
    }
}

impl Uids for Records {
    fn uid(&self, id: WorkloadId) -> &str {
        self.get(id).map_or("", |record| &record.uid)
    }
}

impl Workloads for Records {
    fn running(&self, id: WorkloadId) -> Option<&Running> {
        self.get(id)?.running.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, Says};
    use crate::{State, WorkloadSpec};

    #[test]
    fn numbers_hold_over_pages_and_are_given_again() {
        let mut state = State::default();
        let add = |state: &mut State, at: usize| {
            let name = format!("{at:05}");
            state.add_pending(WorkloadSpec {
                name: &name,
                uid: &name,
                queue: "a",
                priority: 0,
                order_time: 0,
                pod_sets: Vec::new(),
                is_in_scope: true,
                says: Says::default(),
            })
        };
        let count = PAGE * 2 + 1;
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
