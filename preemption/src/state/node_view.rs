//! One ClusterQueue or cohort, read-only.

use super::model::State;
use crate::amount::Amount;
use crate::ids::{FlavorResource, NodeId, WorkloadId};
use crate::policy::QueueingStrategy;
use crate::queue::Queue;
use crate::quota::{Overlay, UsageStore, View};

/// The number of pending workloads of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingCounts {
    /// Active and inadmissible workloads.
    pub queued: usize,
    /// Workloads in backoff.
    pub backing_off: usize,
}

/// One ClusterQueue or cohort, read-only, as of the last
/// [`apply_changes`](super::State::apply_changes). A cohort reads as a queue without workloads.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    state: &'a State,
    node: NodeId,
}

impl<'a> NodeView<'a> {
    pub(super) const fn new(state: &'a State, node: NodeId) -> Self {
        Self { state, node }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'a str {
        self.state.tree.node(self.node).name()
    }

    /// Returns the root of its tree; itself without a cohort.
    #[must_use]
    pub fn root(self) -> NodeId {
        self.state.tree.node(self.node).root
    }

    /// Returns the queueing strategy; the default one of a cohort.
    #[must_use]
    pub fn strategy(self) -> QueueingStrategy {
        self.queue()
            .map(|it| it.settings.strategy)
            .unwrap_or_default()
    }

    /// Returns whether workloads behind the head may start while it does not fit.
    #[must_use]
    pub fn has_backfill(self) -> bool {
        self.queue()
            .is_some_and(|it| it.settings.backfill.is_some())
    }

    /// Returns the active workloads in queue order.
    #[must_use]
    pub fn active(self) -> Vec<WorkloadId> {
        self.queue().map(Queue::active).unwrap_or_default()
    }

    /// Returns the inadmissible workloads in queue order.
    #[must_use]
    pub fn inadmissible(self) -> Vec<WorkloadId> {
        self.queue().map(Queue::inadmissible).unwrap_or_default()
    }

    /// Returns the active and inadmissible workloads together in queue order, as Kueue's visibility API lists them. Costs
    /// their number times its logarithm.
    #[must_use]
    pub fn pending(self) -> Vec<WorkloadId> {
        self.queue().map(Queue::pending).unwrap_or_default()
    }

    /// Returns the number of pending workloads of the queue in front of one of them, at most `max`; those out of scope do not
    /// count. Costs the result and the number of classes of equivalent workloads.
    #[must_use]
    pub fn count_ahead(self, id: WorkloadId, max: usize) -> usize {
        let row = self.state.workloads.get(id);
        let key = row.map(|it| it.queue_key(id));
        let queue = self.queue();
        key.zip(queue)
            .map_or(0, |(key, queue)| queue.count_ahead(&key, max))
    }

    /// Returns the preemptor that waits for its victims: in a `BestEffortFIFO` queue it comes first while it is active.
    #[must_use]
    pub fn waiting_preemptor(self) -> Option<WorkloadId> {
        self.queue().and_then(Queue::sticky)
    }

    /// Returns the workloads in backoff, the earliest end first. Kueue counts them among the inadmissible
    /// ones.
    #[must_use]
    pub fn backing_off(self) -> Vec<WorkloadId> {
        self.queue().map(Queue::backing_off).unwrap_or_default()
    }

    /// Returns the number of pending workloads, in constant time.
    #[must_use]
    pub fn pending_counts(self) -> PendingCounts {
        let (queued, backing_off) = self.queue().map(Queue::pending_counts).unwrap_or_default();
        PendingCounts {
            queued,
            backing_off,
        }
    }

    /// Returns the number of workloads with reserved quota.
    #[must_use]
    pub fn admitted_count(self) -> usize {
        let groups = self.state.admitted_index.groups(self.node).iter();
        let each = groups.map(|it| {
            let candidates = it.evicted.len().saturating_add(it.not_evicted.len());
            candidates.saturating_add(it.stuck.len())
        });
        each.fold(0, usize::saturating_add)
    }

    /// Returns the usage, sorted by flavor and resource.
    #[must_use]
    pub fn usage(self) -> Vec<(FlavorResource, Amount)> {
        let cells = self.state.tree.node(self.node).cells.iter();
        cells
            .map(|(of, cell)| (*of, self.state.usage.usage(*cell)))
            .collect()
    }

    /// Returns the usage beyond the nominal quota.
    #[must_use]
    pub fn borrowed(self, of: FlavorResource) -> Amount {
        let tree = &self.state.tree;
        let Some(cell) = tree.node(self.node).cell(of) else {
            return Amount::ZERO;
        };
        let nominal = tree.cell(cell).nominal;
        self.state.usage.usage(cell).minus(nominal).or_zero()
    }

    /// Returns the nominal quota; zero without one.
    #[must_use]
    pub fn nominal(self, of: FlavorResource) -> Amount {
        let tree = &self.state.tree;
        let cell = tree.node(self.node).cell(of);
        cell.map_or(Amount::ZERO, |it| tree.cell(it).nominal)
    }

    /// Returns the quota that is free now, the part that can be borrowed included.
    #[must_use]
    pub fn available(self, of: FlavorResource) -> Amount {
        let tree = &self.state.tree;
        let Some(cell) = tree.node(self.node).cell(of) else {
            return Amount::ZERO;
        };
        let mut overlay = Overlay::default();
        let view = View::new(tree, &self.state.usage, &mut overlay);
        view.available(cell).or_zero()
    }

    fn queue(self) -> Option<&'a Queue> {
        self.state.queues.get(self.node.index())
    }
}

#[cfg(test)]
mod tests {
    use super::PendingCounts;
    use crate::{
        Amount, CohortSpec, FlavorResource, Reservation, State, TreeView, WorkloadSpec, mark_stuck,
    };

    fn cohort(state: &mut State, name: &str, parent: Option<&str>) {
        state.set_cohort(CohortSpec {
            name,
            parent,
            quotas: Vec::new(),
            weight: 1.0,
        });
    }

    #[test]
    fn node_path_starts_at_the_root() {
        let mut state = State::default();
        cohort(&mut state, "team", Some("all"));
        let team = state.cohort("team").unwrap();
        assert_eq!(TreeView::new(&mut state).path(team), "/all/team");
        assert!(!TreeView::new(&mut state).is_in_cohort_cycle(team));
        assert_eq!(state.cohort("unknown"), None);
    }

    #[test]
    fn is_in_cohort_cycle_on_and_below_cycle_is_true() {
        let mut state = State::default();
        cohort(&mut state, "a", Some("b"));
        cohort(&mut state, "b", Some("a"));
        let a = state.cohort("a").unwrap();
        assert!(TreeView::new(&mut state).is_in_cohort_cycle(a));
        // There is no way up.
        assert_eq!(TreeView::new(&mut state).path(a), "/a");
    }

    #[test]
    fn pending_counts_include_queued_and_backing_off() {
        let mut state = State::default();
        let add = |state: &mut State, name| {
            state.add_pending(WorkloadSpec {
                name,
                uid: name,
                queue: "q",
                priority: 0,
                preemption_priority: None,
                order_time: 0,
                waiting_since_s: 0,
                pod_sets: Vec::new(),
                is_in_scope: true,
                preemption_labels: crate::job::PreemptionLabels::default(),
            })
        };
        let one = add(&mut state, "one");
        add(&mut state, "two");
        state.set_backoff(one, 7);
        let queue = state.queue("q").unwrap();
        assert_eq!(
            state.node_view(queue).pending_counts(),
            PendingCounts {
                queued: 1,
                backing_off: 1
            }
        );
        assert_eq!(state.node_view(queue).admitted_count(), 0);
        let (flavor, resource) = (state.flavor("f"), state.resource("cpu"));
        let of = FlavorResource { flavor, resource };
        let held = Reservation {
            usage: vec![(of, Amount::new(5))],
            reserved_at_s: 0,
            is_evicted: false,
        };
        state.reserve(one, &held);
        assert_eq!(
            state.node_view(queue).pending_counts(),
            PendingCounts {
                queued: 1,
                backing_off: 0
            }
        );
        assert_eq!(state.node_view(queue).admitted_count(), 1);
        assert_eq!(state.node_view(queue).borrowed(of), Amount::new(5));
    }

    /// A stuck workload counts as admitted and uses its quota, but is in no list of candidates.
    #[test]
    fn mark_stuck_keeps_quota_without_candidate() {
        let mut state = State::default();
        let (flavor, resource) = (state.flavor("f"), state.resource("cpu"));
        let of = FlavorResource { flavor, resource };
        let held = Reservation {
            usage: vec![(of, Amount::new(5))],
            reserved_at_s: 0,
            is_evicted: false,
        };
        let spec = WorkloadSpec {
            name: "one",
            uid: "one",
            queue: "q",
            priority: 0,
            preemption_priority: None,
            order_time: 0,
            waiting_since_s: 0,
            pod_sets: Vec::new(),
            is_in_scope: true,
            preemption_labels: crate::job::PreemptionLabels::default(),
        };
        let id = state.add_admitted(spec, &held);
        let queue = state.queue("q").unwrap();
        let candidates = |state: &State| {
            let groups = state.admitted_index.groups(queue).iter();
            let each = groups.map(|it| it.evicted.len() + it.not_evicted.len());
            each.sum::<usize>()
        };
        assert_eq!(candidates(&state), 1);
        for _ in 0..2 {
            mark_stuck(&mut state, id);
            assert_eq!(candidates(&state), 0);
            assert_eq!(state.node_view(queue).admitted_count(), 1);
            assert_eq!(state.node_view(queue).usage(), [(of, Amount::new(5))]);
        }
        state.reserve(id, &held);
        assert_eq!(candidates(&state), 1);
        mark_stuck(&mut state, id);
        state.release(id);
        assert_eq!(candidates(&state), 0);
        assert_eq!(state.node_view(queue).admitted_count(), 0);
    }
}
