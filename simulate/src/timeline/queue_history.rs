//! Detects that idle cycles repeat: the queues are in the same state as after an earlier cycle.
//!
//! An idle cycle admits no workload and preempts none. Between idle cycles of one instant no workload arrives and none
//! becomes active, so inadmissible workloads only become more. The state of the queues is therefore the same only after
//! cycles since the last one that parked a workload, and can differ only in the sticky preemptors and in the flavors tried
//! for active workloads. These change only for the heads of a cycle.

use lockkeeper_preemption::ResourceId;
use std::collections::BTreeMap;
use std::mem;

/// The last flavors tried for a workload, by pod set and resource.
pub(super) type TriedFlavors = Vec<(usize, ResourceId, usize)>;

/// A part of the queues that an idle cycle may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// The flavors tried for a job.
    TriedFlavors(usize),
    /// The sticky preemptor of a queue.
    StickyPreemptor(usize),
}

/// The value of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PartValue {
    TriedFlavors(TriedFlavors),
    StickyPreemptor(Option<usize>),
}

/// A change of a part: the values before and after.
#[derive(Clone, Debug)]
struct Change {
    part: Part,
    before: PartValue,
    after: PartValue,
}

/// The states of the queues after the idle cycles of an instant.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueHistory {
    /// For each comparable idle cycle: the changes since the one before. Those of the first are empty.
    cycles: Vec<Vec<Change>>,
    /// The changes of the current cycle.
    current: Vec<Change>,
    /// Whether the current cycle has made a workload inadmissible.
    has_parked: bool,
}

impl QueueHistory {
    /// Forgets all cycles: an instant begins, or a cycle was not idle.
    pub(super) fn clear(&mut self) {
        self.cycles.clear();
        self.current.clear();
        self.has_parked = false;
    }

    /// Records that the current cycle has made workloads inadmissible.
    pub(super) fn park(&mut self) {
        self.has_parked = true;
    }

    /// Records the flavors tried for a job.
    pub(super) fn change_tried_flavors(
        &mut self,
        job: usize,
        before: TriedFlavors,
        after: TriedFlavors,
    ) {
        self.current.push(Change {
            part: Part::TriedFlavors(job),
            before: PartValue::TriedFlavors(before),
            after: PartValue::TriedFlavors(after),
        });
    }

    /// Records a new sticky preemptor of a queue.
    pub(super) fn change_sticky(&mut self, queue: usize, before: Option<usize>, after: usize) {
        self.current.push(Change {
            part: Part::StickyPreemptor(queue),
            before: PartValue::StickyPreemptor(before),
            after: PartValue::StickyPreemptor(Some(after)),
        });
    }

    /// Ends an idle cycle; returns whether the state of the queues is that after an earlier one. Costs the changes of the
    /// cycles since the last workload became inadmissible.
    pub(super) fn end_idle_cycle(&mut self) -> bool {
        let changes = mem::take(&mut self.current);
        if mem::take(&mut self.has_parked) || self.cycles.is_empty() {
            self.cycles.clear();
            self.cycles.push(Vec::new());
            return false;
        }
        self.cycles.push(changes);
        self.is_repeated()
    }

    fn is_repeated(&self) -> bool {
        // From the last cycle backwards: the current value of each changed part, and the value at that cycle.
        let mut parts: BTreeMap<Part, (&PartValue, &PartValue)> = BTreeMap::new();
        let mut differing = 0_usize;
        // The changes of the first cycle lead to its state from one that is not compared.
        for changes in self.cycles.iter().skip(1).rev() {
            for change in changes.iter().rev() {
                let (now, then) = parts
                    .entry(change.part)
                    .or_insert((&change.after, &change.after));
                let differed = now != then;
                *then = &change.before;
                match (differed, now != then) {
                    (false, true) => differing = differing.saturating_add(1),
                    (true, false) => differing = differing.saturating_sub(1),
                    _ => {}
                }
            }
            if differing == 0 {
                return true;
            }
        }
        false
    }
}
