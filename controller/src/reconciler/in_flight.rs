//! Writes whose result is not known yet, and how many of them may run at once.

use super::output::{ObjectRef, WriteId, WritePurpose, WriteResult};
use super::placement::victim_pod::PodPreemption;
use std::collections::{BTreeMap, BTreeSet};

/// The number of namespaces in which writes must fail before server errors count as overload.
const FAILED_NAMESPACES_MIN: usize = 2;

/// A write whose result is not known yet.
#[derive(Debug)]
pub(super) struct InFlightWrite {
    pub(super) object: ObjectRef,
    pub(super) purpose: WritePurpose,
    /// The resource version that the write was planned on.
    pub(super) version: u64,
    /// What to record if it evicts or marks a pod.
    pub(super) preemption: Option<PodPreemption>,
}

/// All in-flight writes, with the limit on their number.
#[derive(Debug)]
pub(super) struct InFlightWrites {
    writes: BTreeMap<WriteId, InFlightWrite>,
    last_id: u64,
    /// The current limit: halved by each failure, raised by one with each other result.
    limit: usize,
    limit_max: usize,
    /// The namespaces with server errors since the last success.
    failed_namespaces: BTreeSet<String>,
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
            failed_namespaces: BTreeSet::new(),
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
    ///
    /// Server errors lower it only if they occur in several namespaces: a tenant can create objects whose writes
    /// fail, and must not slow down the writes of others.
    pub(super) fn adjust_limit(&mut self, object: &ObjectRef, result: &WriteResult) {
        let is_overloaded = match result {
            WriteResult::Failed(_) => true,
            WriteResult::ServerError(_) => {
                let namespace = object.namespace().unwrap_or_default().to_owned();
                self.failed_namespaces.insert(namespace);
                self.failed_namespaces.len() >= FAILED_NAMESPACES_MIN
            }
            // A conflict or a rejection is a response, too: the API server is not overloaded.
            _ => {
                self.failed_namespaces.clear();
                self.limit = self.limit.saturating_add(1).min(self.limit_max);
                return;
            }
        };
        if is_overloaded {
            // Multiplicative decrease, additive increase: the API server does not keep up.
            self.limit = (self.limit / 2).max(1);
            self.failed_namespaces.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{InFlightWrite, InFlightWrites, ObjectRef, WritePurpose, WriteResult};
    use crate::key::ObjectKey;

    fn workload(namespace: &str) -> ObjectRef {
        ObjectRef::Workload(ObjectKey::new(namespace, "w"))
    }

    fn write(namespace: &str) -> InFlightWrite {
        InFlightWrite {
            object: workload(namespace),
            purpose: WritePurpose::Admit,
            version: 1,
            preemption: None,
        }
    }

    #[test]
    fn writes_are_in_flight_until_they_finish() {
        let mut writes = InFlightWrites::new(16);
        assert_eq!(writes.len(), 0);
        let ids = ["a", "b"].map(|it| writes.begin(write(it)));
        assert_eq!(writes.len(), 2);
        for (id, left) in ids.into_iter().zip([1, 0]) {
            assert!(writes.get(id).is_some());
            assert!(writes.finish(id).is_some() && writes.finish(id).is_none());
            assert_eq!(writes.len(), left);
        }
    }

    #[test]
    fn in_flight_limit_is_not_lowered_by_errors_of_one_namespace() {
        let mut writes = InFlightWrites::new(16);
        let error = WriteResult::ServerError(String::new());
        for _ in 0..100 {
            writes.adjust_limit(&workload("a"), &error);
        }
        assert_eq!(writes.limit, 16);
        writes.adjust_limit(&workload("b"), &error);
        assert_eq!(writes.limit, 8);
        writes.adjust_limit(&workload("a"), &error);
        writes.adjust_limit(&workload("a"), &WriteResult::Done(1));
        writes.adjust_limit(&workload("b"), &error);
        assert_eq!(writes.limit, 9);
    }

    #[test]
    fn in_flight_limit_is_halved_by_overload() {
        let mut writes = InFlightWrites::new(16);
        for expected in [8, 4, 2, 1, 1] {
            writes.adjust_limit(&workload("a"), &WriteResult::Failed(String::new()));
            assert_eq!(writes.limit, expected);
        }
        assert!(writes.has_capacity());
        writes.begin(write("a"));
        assert!(!writes.has_capacity());
        writes.adjust_limit(&workload("a"), &WriteResult::Conflict);
        assert_eq!(writes.limit, 2);
        assert!(writes.has_capacity());
    }
}
