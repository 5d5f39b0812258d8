//! The pod sets of all workloads; equal ones are stored once.

use crate::assignment::PodSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reference-counted pod sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSetInterner {
    entries: BTreeMap<Arc<[PodSet]>, InternedPodSets>,
    /// The ids of the entries.
    ids: BTreeSet<u64>,
    /// An id is never reused: a queue may keep it in an inadmissible class after the last workload with it is gone.
    next_id: u64,
}

#[derive(Clone, Debug)]
struct InternedPodSets {
    id: u64,
    workloads: usize,
}

impl PodSetInterner {
    /// Returns the shared pod sets and their id, for one more workload.
    pub(crate) fn acquire(&mut self, pod_sets: Vec<PodSet>) -> (Arc<[PodSet]>, u64) {
        if let Some((pod_sets, known)) = self.entries.get_key_value(&*pod_sets) {
            let (pod_sets, number) = (Arc::clone(pod_sets), known.id);
            if let Some(known) = self.entries.get_mut(&*pod_sets) {
                known.workloads = known.workloads.saturating_add(1);
            }
            return (pod_sets, number);
        }
        let pod_sets: Arc<[PodSet]> = pod_sets.into();
        let number = self.next_id;
        self.next_id = number.saturating_add(1);
        let known = InternedPodSets {
            id: number,
            workloads: 1,
        };
        self.entries.insert(Arc::clone(&pod_sets), known);
        self.ids.insert(number);
        (pod_sets, number)
    }

    /// Returns whether any workload has the pod sets with this id.
    pub(crate) fn is_used(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }

    /// Releases the pod sets of a removed workload.
    pub(crate) fn release(&mut self, pod_sets: &[PodSet]) {
        let Some(known) = self.entries.get_mut(pod_sets) else {
            return;
        };
        known.workloads = known.workloads.saturating_sub(1);
        if known.workloads == 0 {
            let id = known.id;
            self.entries.remove(pod_sets);
            self.ids.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{State, WorkloadSpec};

    fn pod_sets(count: i64) -> Vec<PodSet> {
        vec![PodSet {
            name: "main".into(),
            count,
            count_min: None,
            requests: Box::new([]),
            ineligible: Box::new([]),
            template_hash: 0,
        }]
    }

    #[test]
    fn state_without_workloads_drops_interned_pod_sets() {
        let mut state = State::default();
        for count in 1..=3 {
            // The same name, so each workload replaces the previous one.
            state.add_pending(WorkloadSpec {
                name: "a",
                uid: "a",
                queue: "a",
                priority: 0,
                preemption_priority: None,
                order_time: 0,
                waiting_since_s: 0,
                pod_sets: pod_sets(count),
                is_in_scope: true,
                preemption_labels: crate::job::PreemptionLabels::default(),
            });
            assert_eq!(state.pod_set_interner.entries.len(), 1);
        }
        let known = state.workload("a").unwrap();
        state.remove(known);
        assert!(state.pod_set_interner.entries.is_empty());
    }

    #[test]
    fn pod_set_interner_drops_unused_pod_sets() {
        let mut shapes = PodSetInterner::default();
        let (one, first) = shapes.acquire(pod_sets(1));
        let (again, second) = shapes.acquire(pod_sets(1));
        assert!(Arc::ptr_eq(&one, &again));
        assert_eq!(first, second);
        assert_ne!(shapes.acquire(pod_sets(2)).1, first);
        shapes.release(&one);
        assert_eq!(shapes.acquire(pod_sets(1)).1, first);
        shapes.release(&one);
        shapes.release(&one);
        assert_eq!(shapes.entries.len(), 1);
        assert_ne!(shapes.acquire(pod_sets(1)).1, first);
    }
}
