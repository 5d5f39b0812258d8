//! One workload, read-only.

use super::model::State;
use crate::admitted::NO_END;
use crate::amount::Amount;
use crate::assignment::PodSet;
use crate::ids::{FlavorResource, NodeId, ResourceId, WorkloadId};
use crate::spec::Reservation;
use std::sync::Arc;

/// One workload, read-only. An unknown id reads as a workload without queue, pod sets and quota.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadView<'a> {
    state: &'a State,
    id: WorkloadId,
}

impl<'a> WorkloadView<'a> {
    pub(super) const fn new(state: &'a State, id: WorkloadId) -> Self {
        Self { state, id }
    }

    /// Returns its queue.
    #[must_use]
    pub fn queue(self) -> Option<NodeId> {
        self.state.workloads.get(self.id).map(|row| row.queue)
    }

    /// Returns its name, which the state shares; empty if it is unknown.
    #[must_use]
    pub fn shared_name(self) -> Arc<str> {
        let row = self.state.workloads.get(self.id);
        row.map(|row| Arc::clone(&row.name)).unwrap_or_default()
    }

    /// Returns its uid; empty if it is unknown.
    #[must_use]
    pub fn uid(self) -> &'a str {
        let row = self.state.workloads.get(self.id);
        row.map_or("", |row| &*row.uid)
    }

    /// Returns its scheduling priority; 0 if it is unknown.
    #[must_use]
    pub fn priority(self) -> i32 {
        self.state
            .workloads
            .get(self.id)
            .map_or(0, |row| row.priority)
    }

    /// Returns its preemption priority, which is at least its scheduling priority; 0 if it is unknown.
    #[must_use]
    pub fn preemption_priority(self) -> i32 {
        self.state
            .workloads
            .get(self.id)
            .map_or(0, |row| row.preemption_priority)
    }

    /// Returns its maximum execution time in seconds; `None` if it has no limit, or is unknown.
    #[must_use]
    pub fn execution_time_max_s(self) -> Option<i64> {
        let row = self.state.workloads.get(self.id)?;
        Some(row.execution_time_max_s).filter(|it| *it != NO_END)
    }

    /// Returns its time in queue order, in the unit of all workloads; 0 if it is unknown.
    #[must_use]
    pub fn order_time(self) -> i64 {
        let row = self.state.workloads.get(self.id);
        row.map_or(0, |row| row.order_time)
    }

    /// Returns whether the namespace selector of its queue matches; false if it is unknown.
    #[must_use]
    pub fn is_in_scope(self) -> bool {
        let row = self.state.workloads.get(self.id);
        row.is_some_and(|row| row.is_in_scope)
    }

    /// Returns its pod sets.
    #[must_use]
    pub fn pod_sets(self) -> &'a [PodSet] {
        self.state
            .workloads
            .get(self.id)
            .map_or(&[], |row| &*row.pod_sets)
    }

    /// Returns whether it is pending and its search for flavors stopped before the last flavor. The next
    /// cycle continues the search there.
    #[must_use]
    pub fn has_untried_flavors(self) -> bool {
        let row = self.state.workloads.get(self.id);
        row.is_some_and(|row| row.last_assignment.is_some() && row.admitted.is_none())
    }

    /// Returns the last flavors tried, by position of the pod set and resource: the next search continues behind them,
    /// unless quota has become free since. Empty if the search reached the last flavor of each resource, or if the
    /// workload is admitted.
    #[must_use]
    pub fn tried_flavors(self) -> &'a [(usize, ResourceId, usize)] {
        let row = self.state.workloads.get(self.id);
        let last = row.and_then(|row| row.last_assignment.as_ref());
        last.map_or(&[], |it| &it.tried_flavors)
    }

    /// Returns whether it is in the active queue: pending, not inadmissible and not backing off.
    #[must_use]
    pub fn is_active(self) -> bool {
        let Some(row) = self.state.workloads.get(self.id) else {
            return false;
        };
        let queue = self.state.queues.get(row.queue.index());
        queue.is_some_and(|queue| queue.is_active(&row.queue_key(self.id), row.equivalence_class()))
    }

    /// Returns its reserved quota, sorted and without zero amounts; `None` if it has none.
    #[must_use]
    pub fn reservation(self) -> Option<Reservation> {
        let admitted = self.state.workloads.get(self.id)?.admitted.as_ref()?;
        let (reserved_at_s, usage) = self.reserved_usage()?;
        Some(Reservation {
            usage: usage.collect(),
            reserved_at_s,
            is_evicted: admitted.is_evicted,
        })
    }

    /// Returns since when it has reserved quota, in seconds, and how much, without a copy.
    #[must_use]
    pub fn reserved_usage(
        self,
    ) -> Option<(i64, impl Iterator<Item = (FlavorResource, Amount)> + 'a)> {
        let admitted = self.state.workloads.get(self.id)?.admitted.as_ref()?;
        let index = &self.state.admitted_index;
        let group = index.group(admitted.queue, admitted.usage_group);
        let amounts = admitted.amounts.as_slice().iter().copied();
        let usage = group.flavor_resources.iter().copied().zip(amounts);
        Some((admitted.reserved_at_s, usage))
    }

    /// Returns the end of its backoff, in seconds; `None` if it has no backoff.
    #[must_use]
    pub fn backoff_until_s(self) -> Option<i64> {
        self.state.workloads.get(self.id)?.backoff_until_s
    }

    /// Returns how often it was preempted, counted when it released its quota.
    #[must_use]
    pub fn preemption_count(self) -> u32 {
        self.state.histories.preemption_count(self.id)
    }
}
