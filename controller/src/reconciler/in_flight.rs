//! Writes whose result is not known yet, and how many of them may run at once.

use super::output::{ObjectRef, WriteId, WritePurpose, WriteResult};
use std::collections::BTreeMap;

/// A write whose result is not known yet.
#[derive(Debug)]
pub(super) struct InFlightWrite {
    pub(super) object: ObjectRef,
    pub(super) purpose: WritePurpose,
    /// The resource version that the write was planned on.
    pub(super) version: u64,
}

/// All in-flight writes, with the limit on their number.
#[derive(Debug)]
pub(super) struct InFlightWrites {
    writes: BTreeMap<WriteId, InFlightWrite>,
    last_id: u64,
    /// The current limit: halved by each failure, raised by one with each other result.
    limit: usize,
    limit_max: usize,
}

impl InFlightWrites {
    /// At most `writes_max` writes at once, and at least one.
    pub(super) fn new(writes_max: usize) -> Self {
        let limit_max = writes_max.max(1);
        Self {
            writes: BTreeMap::new(),
            last_id: 0,
            limit: limit_max,
            limit_max,
        }
    }

    pub(super) fn begin(&mut self, write: InFlightWrite) -> WriteId {
        self.last_id = self.last_id.wrapping_add(1);
        let id = WriteId(self.last_id);
        self.writes.insert(id, write);
        id
    }

    /// Removes a write; `None` if there is none with this id.
    pub(super) fn finish(&mut self, id: WriteId) -> Option<InFlightWrite> {
        self.writes.remove(&id)
    }

    pub(super) fn get(&self, id: WriteId) -> Option<&InFlightWrite> {
        self.writes.get(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn has_capacity(&self) -> bool {
        self.writes.len() < self.limit
    }

    /// Lowers the limit after failures and raises it again.
    pub(super) fn adjust_limit(&mut self, result: &WriteResult) {
        self.limit = match result {
            // Multiplicative decrease, additive increase: the API server does not keep up.
            WriteResult::Failed(_) => (self.limit / 2).max(1),
            // A conflict or a rejection is a response, too: the API server is not overloaded.
            _ => self.limit.saturating_add(1).min(self.limit_max),
        };
    }
}
