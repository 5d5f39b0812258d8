//! The admitted workloads of each queue in candidate order.
//!
//! An admitted workload uses some flavors and resources. Workloads of a queue that use the same ones are
//! a [`UsageGroup`]; each group is kept in candidate order, so that a search reads from the front and
//! never sorts. Usage is summed by priority, so that a search that cannot succeed is skipped.
//!
//! The priority of a candidate is its **preemption priority**, which is at least its scheduling priority; a preemptor
//! is compared by its **scheduling priority**. So no two workloads preempt each other in turn by priority. If A preempts
//! B, then A's scheduling priority is above B's preemption priority, and so above B's scheduling priority: along a chain
//! of preemptions the scheduling priority falls, and no chain returns to its start. With `LowerOrNewerEqualPriority` it
//! may stay equal; then both priorities of A and B are equal and B is newer, so the time in queue order rises. The
//! argument does not cover preemption that ignores priorities: `reclaimWithinCohort: Any` and shares of fair sharing,
//! see [`crate::damping`].

use crate::amount::Amount;
use crate::candidate_list::{CandidateKey, CandidateList, UidLookup};
use crate::ids::{CellId, FlavorResource, NodeId, WorkloadId};
use crate::job::PreemptionLabels;
use crate::quota::Tree;
use crate::small_amounts::SmallAmounts;
use crate::tree_versions::TreeVersions;
use crate::usage_sums::UsageSums;

/// The end of a workload that may run for ever.
pub(crate) const NO_END: i64 = i64::MAX;

/// A workload with reserved quota.
#[derive(Clone, Debug)]
pub(crate) struct AdmittedWorkload {
    pub(crate) queue: NodeId,
    /// Its usage group, by index in its queue.
    pub(crate) usage_group: u32,
    /// Its usage of each flavor and resource of the group.
    pub(crate) amounts: SmallAmounts,
    /// At least its scheduling priority.
    pub(crate) preemption_priority: i32,
    /// Compared by `LowerOrNewerEqualPriority`.
    pub(crate) order_time: i64,
    pub(crate) reserved_at_s: i64,
    /// When it ends at the latest; [`NO_END`] if that is not known.
    pub(crate) ends_by_s: i64,
    pub(crate) is_evicted: bool,
    pub(crate) preemption_labels: PreemptionLabels,
}

impl AdmittedWorkload {
    fn candidate_key(&self, id: WorkloadId, uids: &impl UidLookup) -> CandidateKey {
        CandidateKey::new(
            self.preemption_priority,
            id,
            self.reserved_at_s,
            uids.uid(id),
        )
    }
}

/// Looks up admitted workloads by id.
pub(crate) trait AdmittedLookup: UidLookup {
    fn admitted(&self, id: WorkloadId) -> Option<&AdmittedWorkload>;
}

/// The admitted workloads of one queue that use the same flavors and resources.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageGroup {
    /// Sorted.
    pub(crate) flavor_resources: Vec<FlavorResource>,
    /// The cell of the queue for each of them.
    pub(crate) cells: Vec<CellId>,
    pub(crate) evicted: CandidateList,
    pub(crate) not_evicted: CandidateList,
    /// Evicted workloads that do not release their quota. They are no candidates.
    pub(crate) stuck: CandidateList,
    /// Whether any of its workloads has, or had, an amount of zero: they are not in the sums of used quota.
    pub(crate) has_zero_amounts: bool,
}

impl UsageGroup {
    /// Returns whether its workloads use any of `of`.
    pub(crate) fn uses_any(&self, of: &[FlavorResource]) -> bool {
        self.flavor_resources.iter().any(|it| of.contains(it))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.evicted.is_empty() && self.not_evicted.is_empty() && self.stuck.is_empty()
    }

    fn candidates_mut(&mut self, is_evicted: bool) -> &mut CandidateList {
        if is_evicted {
            &mut self.evicted
        } else {
            &mut self.not_evicted
        }
    }
}

static EMPTY_GROUP: UsageGroup = UsageGroup {
    flavor_resources: Vec::new(),
    cells: Vec::new(),
    evicted: CandidateList::new(),
    not_evicted: CandidateList::new(),
    stuck: CandidateList::new(),
    has_zero_amounts: false,
};

/// All admitted workloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdmittedIndex {
    /// By queue.
    groups: Vec<Vec<UsageGroup>>,
    /// By queue.
    used: Vec<UsageSums>,
    /// By root of the tree.
    used_below: Vec<UsageSums>,
    versions: TreeVersions,
}

impl AdmittedIndex {
    /// Adopts the nodes, cells and roots of a changed tree.
    pub(crate) fn rebuild(&mut self, tree: &Tree) {
        let nodes = tree.nodes().count();
        self.groups.resize_with(nodes, Vec::new);
        self.used.resize_with(nodes, UsageSums::default);
        // Queues may have moved to other trees, so the sums are computed again.
        self.used_below.clear();
        self.used_below.resize_with(nodes, UsageSums::default);
        self.versions.rebuild(nodes);
        for (id, node) in tree.nodes() {
            for group in self.groups.get_mut(id.index()).into_iter().flatten() {
                group.cells = cells(tree, id, &group.flavor_resources);
            }
            if let (Some(used), Some(below)) = (
                self.used.get(id.index()),
                self.used_below.get_mut(node.root.index()),
            ) {
                below.add_all(used);
            }
        }
    }

    /// Returns the group of the queue for exactly the flavors and resources of `usage`, which is sorted; adds
    /// it if it is missing.
    pub(crate) fn group_for(
        &mut self,
        tree: &Tree,
        queue: NodeId,
        usage: &[(FlavorResource, Amount)],
    ) -> u32 {
        let Some(groups) = self.groups.get_mut(queue.index()) else {
            return u32::MAX;
        };
        let of = || usage.iter().map(|(of, _)| *of);
        let known = |group: &UsageGroup| group.flavor_resources.iter().copied().eq(of());
        let at = groups.iter().position(known).unwrap_or_else(|| {
            let of: Vec<_> = of().collect();
            groups.push(UsageGroup {
                cells: cells(tree, queue, &of),
                flavor_resources: of,
                ..UsageGroup::default()
            });
            groups.len().saturating_sub(1)
        });
        if let Some(group) = groups.get_mut(at) {
            let mut amounts = usage.iter().map(|(_, amount)| *amount);
            group.has_zero_amounts |= amounts.any(|it| it == Amount::ZERO);
        }
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    pub(crate) fn groups(&self, queue: NodeId) -> &[UsageGroup] {
        self.groups.get(queue.index()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn group(&self, queue: NodeId, group: u32) -> &UsageGroup {
        let group = usize::try_from(group).unwrap_or(usize::MAX);
        self.groups(queue).get(group).unwrap_or(&EMPTY_GROUP)
    }

    /// Returns the usage of a workload as cells and amounts.
    pub(crate) fn usage<'a>(
        &'a self,
        admitted: &'a AdmittedWorkload,
    ) -> impl Iterator<Item = (CellId, Amount)> + 'a {
        let cells = &self.group(admitted.queue, admitted.usage_group).cells;
        cells
            .iter()
            .copied()
            .zip(admitted.amounts.as_slice().iter().copied())
    }

    pub(crate) fn insert(
        &mut self,
        tree: &Tree,
        uids: &impl UidLookup,
        id: WorkloadId,
        admitted: &AdmittedWorkload,
    ) {
        self.change_sums(tree, admitted, Amount::plus);
        self.raise_versions(tree, admitted);
        if let Some(group) = self.group_mut(admitted) {
            let ranked = group.candidates_mut(admitted.is_evicted);
            ranked.insert(admitted.candidate_key(id, uids), uids);
        }
    }

    /// The workload must still be in `workloads`, since the candidate order compares uids.
    pub(crate) fn remove(
        &mut self,
        tree: &Tree,
        uids: &impl UidLookup,
        id: WorkloadId,
        admitted: &AdmittedWorkload,
    ) {
        self.change_sums(tree, admitted, Amount::minus);
        self.raise_versions(tree, admitted);
        if let Some(group) = self.group_mut(admitted) {
            let ranked = group.candidates_mut(admitted.is_evicted);
            ranked.remove(&admitted.candidate_key(id, uids), uids);
            group.stuck.remove(&admitted.candidate_key(id, uids), uids);
        }
    }

    /// Moves a workload to the evicted ones of its group.
    pub(crate) fn mark_evicted(
        &mut self,
        tree: &Tree,
        uids: &impl UidLookup,
        id: WorkloadId,
        admitted: &AdmittedWorkload,
    ) {
        self.raise_versions(tree, admitted);
        if let Some(group) = self.group_mut(admitted) {
            group
                .not_evicted
                .remove(&admitted.candidate_key(id, uids), uids);
            group.evicted.insert(admitted.candidate_key(id, uids), uids);
        }
    }

    /// Moves an evicted workload out of the candidates of its group.
    pub(crate) fn mark_stuck(
        &mut self,
        tree: &Tree,
        uids: &impl UidLookup,
        id: WorkloadId,
        admitted: &AdmittedWorkload,
    ) {
        self.raise_versions(tree, admitted);
        if let Some(group) = self.group_mut(admitted) {
            group
                .evicted
                .remove(&admitted.candidate_key(id, uids), uids);
            group.stuck.insert(admitted.candidate_key(id, uids), uids);
        }
    }

    /// Returns an upper bound of the usage of the workloads of a queue with a preemption priority below `below`; `None`
    /// includes every priority.
    pub(crate) fn used_by_queue(
        &self,
        queue: NodeId,
        of: FlavorResource,
        below: Option<i32>,
    ) -> Amount {
        self.used
            .get(queue.index())
            .map_or(Amount::ZERO, |used| used.sum(of, below))
    }

    /// Returns the same bound for all queues below a root.
    pub(crate) fn used_by_tree(
        &self,
        root: NodeId,
        of: FlavorResource,
        below: Option<i32>,
    ) -> Amount {
        self.used_below
            .get(root.index())
            .map_or(Amount::ZERO, |used| used.sum(of, below))
    }

    /// The versions of the trees: they rise with each change of an admitted workload.
    pub(crate) const fn versions(&self) -> &TreeVersions {
        &self.versions
    }

    fn raise_versions(&mut self, tree: &Tree, admitted: &AdmittedWorkload) {
        let root = tree.node(admitted.queue).root;
        let group = usize::try_from(admitted.usage_group).unwrap_or(usize::MAX);
        let groups = self.groups.get(admitted.queue.index());
        let used = groups.and_then(|groups| groups.get(group));
        let used = used.into_iter().flat_map(|it| &it.flavor_resources);
        self.versions.raise(root, used.map(|of| of.flavor));
    }

    fn group_mut(&mut self, admitted: &AdmittedWorkload) -> Option<&mut UsageGroup> {
        let group = usize::try_from(admitted.usage_group).unwrap_or(usize::MAX);
        let groups = self.groups.get_mut(admitted.queue.index())?;
        groups.get_mut(group)
    }

    fn change_sums(
        &mut self,
        tree: &Tree,
        admitted: &AdmittedWorkload,
        change: impl Fn(Amount, Amount) -> Amount,
    ) {
        let root = tree.node(admitted.queue).root;
        let group = usize::try_from(admitted.usage_group).unwrap_or(usize::MAX);
        let groups = self.groups.get(admitted.queue.index());
        let Some(group) = groups.and_then(|groups| groups.get(group)) else {
            return;
        };
        for (of, amount) in group
            .flavor_resources
            .iter()
            .zip(admitted.amounts.as_slice())
        {
            let priority = admitted.preemption_priority;
            for (sums, node) in [
                (&mut self.used, admitted.queue),
                (&mut self.used_below, root),
            ] {
                if let Some(sums) = sums.get_mut(node.index()) {
                    sums.change(*of, priority, |sum| change(sum, *amount));
                }
            }
        }
    }
}

fn cells(tree: &Tree, queue: NodeId, of: &[FlavorResource]) -> Vec<CellId> {
    let node = tree.node(queue);
    // The id of a missing cell reads as a cell without quota and usage.
    let cell = |of: &FlavorResource| node.cell(*of).unwrap_or(CellId(u32::MAX));
    of.iter().map(cell).collect()
}
