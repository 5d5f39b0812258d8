//! The workloads by their numbers.

use crate::assignment::PodSet;
use crate::names::{NodeId, WorkloadId};
use crate::queue::{Class, Place, Progress};
use crate::ranked::Uids;
use crate::running::Running;
use crate::victims::Workloads;
use std::cmp::Reverse;
use std::sync::Arc;

/// A workload that is known.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
    pub(crate) queue: NodeId,
    pub(crate) priority: i32,
    pub(crate) order_time_s: i64,
    pub(crate) pod_sets: Arc<[PodSet]>,
    /// Equal for equal pod sets.
    pub(crate) shape: u64,
    pub(crate) is_in_scope: bool,
    pub(crate) held_until_s: Option<i64>,
    pub(crate) progress: Option<Box<Progress>>,
    pub(crate) running: Option<Running>,
}

impl Record {
    pub(crate) fn place(&self, id: WorkloadId) -> Place {
        Place {
            priority: Reverse(self.priority),
            order_time_s: self.order_time_s,
            uid: Arc::clone(&self.uid),
            id,
        }
    }

    pub(crate) fn class(&self) -> Class {
        (self.shape, self.priority)
    }
}

/// The workloads by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    records: Vec<Option<Record>>,
    free: Vec<WorkloadId>,
}

impl Records {
    pub(crate) fn get(&self, id: WorkloadId) -> Option<&Record> {
        self.records.get(id.index())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: WorkloadId) -> Option<&mut Record> {
        self.records.get_mut(id.index())?.as_mut()
    }

    pub(crate) fn insert(&mut self, record: Record) -> WorkloadId {
        if let Some(id) = self.free.pop()
            && let Some(slot) = self.records.get_mut(id.index())
        {
            *slot = Some(record);
            return id;
        }
        self.records.push(Some(record));
        WorkloadId::of(self.records.len().saturating_sub(1))
    }

    pub(crate) fn remove(&mut self, id: WorkloadId) -> Option<Record> {
        let record = self.records.get_mut(id.index())?.take()?;
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
