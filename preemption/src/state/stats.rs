//! What a queue or a cohort is told about itself.

use super::State;
use crate::amount::Amount;
use crate::dominant_share::DominantShare;
use crate::ids::{FlavorResource, NodeId};
use crate::quota::{Overlay, UsageStore, View};

/// How many workloads wait in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingCounts {
    /// They are looked at, or will be when something has changed.
    pub queued: usize,
    /// They are held until their backoff is over.
    pub backing_off: usize,
}

impl State {
    /// How many workloads wait in a queue. Costs nothing that grows.
    #[must_use]
    pub fn pending_counts(&self, queue: NodeId) -> PendingCounts {
        self.pending_queue(queue)
            .map_or_else(PendingCounts::default, |queue| {
                let (queued, held) = queue.pending_counts();
                PendingCounts {
                    queued,
                    backing_off: held,
                }
            })
    }

    /// How many workloads hold quota of a queue.
    #[must_use]
    pub fn admitted_count(&self, queue: NodeId) -> usize {
        let groups = self.admitted_index.groups(queue).iter();
        let each = groups.map(|it| it.evicted.len().saturating_add(it.not_evicted.len()));
        each.fold(0, usize::saturating_add)
    }

    /// What a queue or a cohort uses of a flavor and resource beyond its nominal quota.
    #[must_use]
    pub fn borrowed(&self, node: NodeId, of: FlavorResource) -> Amount {
        let Some(cell) = self.tree.node(node).cell(of) else {
            return Amount::ZERO;
        };
        let nominal = self.tree.cell(cell).nominal;
        self.usage.usage(cell).minus(nominal).or_zero()
    }

    /// What a queue or a cohort could use more of a flavor and resource now, what others lend it included.
    #[must_use]
    pub fn available(&self, node: NodeId, of: FlavorResource) -> Amount {
        let Some(cell) = self.tree.node(node).cell(of) else {
            return Amount::ZERO;
        };
        let mut overlay = Overlay::default();
        let view = View::new(&self.tree, &self.usage, &mut overlay);
        view.available(cell).or_zero()
    }

    /// Whether a queue or a cohort is on a circle of cohorts or below one, and so takes part in nothing.
    #[must_use]
    pub fn is_in_cohort_cycle(&mut self, node: NodeId) -> bool {
        self.apply_changes();
        self.tree.node(node).is_misconfigured
    }

    /// A cohort by its name, if a queue or a cohort has ever named it.
    #[must_use]
    pub fn cohort(&self, name: &str) -> Option<NodeId> {
        self.cohort_names.get(name).copied()
    }

    /// The names from the root of the tree down to a queue or a cohort, as `/root/cohort/queue`.
    #[must_use]
    pub fn path(&mut self, node: NodeId) -> String {
        self.apply_changes();
        let mut names = Vec::new();
        let mut next = Some(node);
        while let Some(id) = next {
            let node = self.tree.node(id);
            names.push(node.name());
            next = node.parent;
        }
        let names = names.into_iter().rev();
        names.flat_map(|name| ["/", name]).collect()
    }

    /// The share of a queue or a cohort under fair sharing: per mille of what its cohort could lend, divided
    /// by its weight, rounded up; `i64::MAX` if the weight is 0 and it borrows.
    ///
    /// Source: Kueue `pkg/cache/scheduler/fair_sharing.go`, `roundedWeightedShare`.
    #[must_use]
    pub fn weighted_share(&mut self, node: NodeId) -> i64 {
        self.apply_changes();
        let mut overlay = std::mem::take(&mut self.overlay);
        let view = View::new(&self.tree, &self.usage, &mut overlay);
        let share = DominantShare::for_node(&view, node).rounded();
        self.overlay = overlay;
        share
    }
}

#[cfg(test)]
mod tests {
    use super::PendingCounts;
    use crate::{Amount, CohortSpec, FlavorResource, Reservation, State, WorkloadSpec};

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
        assert_eq!(state.path(team), "/all/team");
        assert!(!state.is_in_cohort_cycle(team));
        assert_eq!(state.cohort("nobody"), None);
    }

    #[test]
    fn is_in_cohort_cycle_on_and_below_cycle_is_true() {
        let mut state = State::default();
        cohort(&mut state, "a", Some("b"));
        cohort(&mut state, "b", Some("a"));
        let a = state.cohort("a").unwrap();
        assert!(state.is_in_cohort_cycle(a));
        // There is no way up.
        assert_eq!(state.path(a), "/a");
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
                order_time: 0,
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
            state.pending_counts(queue),
            PendingCounts {
                queued: 1,
                backing_off: 1
            }
        );
        assert_eq!(state.admitted_count(queue), 0);
        let (flavor, resource) = (state.flavor("f"), state.resource("cpu"));
        let of = FlavorResource { flavor, resource };
        let held = Reservation {
            usage: vec![(of, Amount::new(5))],
            reserved_at_s: 0,
            is_evicted: false,
        };
        state.reserve(one, &held);
        assert_eq!(
            state.pending_counts(queue),
            PendingCounts {
                queued: 1,
                backing_off: 0
            }
        );
        assert_eq!(state.admitted_count(queue), 1);
        assert_eq!(state.borrowed(queue, of), Amount::new(5));
    }
}
