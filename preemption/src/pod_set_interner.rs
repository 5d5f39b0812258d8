//! The pod sets of all workloads; equal ones are stored once.

use crate::assignment::PodSet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The number of pod sets without a workload that are kept.
const UNUSED_MAX: usize = 16;

/// Reference-counted pod sets. Those that no workload has any more keep their ids for a while: as in Kueue, a class stays inadmissible
/// after its last workload is deleted, for the workloads that are created next.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSetInterner {
    entries: BTreeMap<Arc<[PodSet]>, InternedPodSets>,
    /// The ids of the entries.
    ids: BTreeSet<u64>,
    /// Entries without a workload, in the order in which they lost the last one; at most [`UNUSED_MAX`].
    unused: VecDeque<Arc<[PodSet]>>,
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
            if known.workloads == 0 {
                self.unused.retain(|it| !Arc::ptr_eq(it, &pod_sets));
            }
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

    /// Returns whether a workload has, or a new one can get, the pod sets with this id.
    pub(crate) fn is_known(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }

    /// Releases the pod sets of a removed workload.
    pub(crate) fn release(&mut self, pod_sets: &Arc<[PodSet]>) {
        let Some(known) = self.entries.get_mut(pod_sets) else {
            return;
        };
        if known.workloads == 1 {
            self.unused.push_back(Arc::clone(pod_sets));
        }
        known.workloads = known.workloads.saturating_sub(1);
        if self.unused.len() > UNUSED_MAX
            && let Some(oldest) = self.unused.pop_front()
            && let Some(oldest) = self.entries.remove(&*oldest)
        {
            self.ids.remove(&oldest.id);
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

    /// The same name, so that each workload replaces the previous one.
    fn replace(state: &mut State, count: i64) {
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
    }

    #[test]
    fn replaced_workloads_leave_a_bounded_number_of_pod_sets() {
        let mut state = State::default();
        for count in 1..1_000 {
            replace(&mut state, count);
            assert!(state.pod_set_interner.entries.len() <= 1 + UNUSED_MAX);
        }
        let known = state.workload("a").unwrap();
        state.remove(known);
        let interner = &state.pod_set_interner;
        let counts = [
            interner.entries.len(),
            interner.ids.len(),
            interner.unused.len(),
        ];
        assert_eq!(counts, [UNUSED_MAX; 3]);
    }

    #[test]
    fn released_pod_sets_keep_their_id_until_others_are_released() {
        let mut interner = PodSetInterner::default();
        let (one, first) = interner.acquire(pod_sets(1));
        let (again, second) = interner.acquire(pod_sets(1));
        assert!(Arc::ptr_eq(&one, &again));
        assert_eq!(first, second);
        assert_ne!(interner.acquire(pod_sets(2)).1, first);
        for _ in 0..2 {
            interner.release(&one);
        }
        assert!(interner.is_known(first));
        // Acquired again, it is not dropped before its second release.
        assert_eq!(interner.acquire(pod_sets(1)).1, first);
        let release_others = |interner: &mut PodSetInterner, first: i64| {
            for count in (first..).take(UNUSED_MAX) {
                let (other, _) = interner.acquire(pod_sets(count));
                interner.release(&other);
            }
        };
        release_others(&mut interner, 100);
        assert_eq!(interner.acquire(pod_sets(1)).1, first);
        for _ in 0..2 {
            interner.release(&one);
        }
        release_others(&mut interner, 1_000);
        assert!(!interner.is_known(first));
        assert_ne!(interner.acquire(pod_sets(1)).1, first);
    }
}
