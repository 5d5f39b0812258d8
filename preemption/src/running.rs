//! The running workloads of each queue, in the order in which they would go.
//!
//! A workload that holds quota uses some flavors and resources. Workloads of a queue that use the same
//! ones are a [`Group`]; each group is kept in candidate order, so that a search takes from the front
//! and never sorts. What could be freed at most is summed by priority, so that a search in vain ends
//! before it begins.

use crate::amount::Amount;
use crate::names::{CellId, FlavorResource, NodeId, WorkloadId};
use crate::quota::Tree;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The candidate order: lowest priority first, then the newest, then by uid (Kueue
/// `CandidatesOrdering`). Those that are being evicted already come before all others; they are kept
/// apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) priority: i32,
    /// When the quota was reserved, in seconds.
    pub(crate) newest: Reverse<i64>,
    /// Compared as bytes.
    pub(crate) uid: Arc<str>,
    pub(crate) id: WorkloadId,
}

/// A workload that holds quota.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) queue: NodeId,
    /// The group in its queue.
    pub(crate) group: usize,
    /// What it uses of each flavor and resource of the group.
    pub(crate) amounts: Box<[Amount]>,
    pub(crate) priority: i32,
    /// What `LowerOrNewerEqualPriority` compares, in seconds.
    pub(crate) order_time_s: i64,
    pub(crate) reserved_at_s: i64,
    pub(crate) is_evicted: bool,
    pub(crate) uid: Arc<str>,
}

impl Running {
    fn key(&self, id: WorkloadId) -> Key {
        Key {
            priority: self.priority,
            newest: Reverse(self.reserved_at_s),
            uid: Arc::clone(&self.uid),
            id,
        }
    }
}

/// Running workloads of one queue that use the same flavors and resources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Sorted.
    pub(crate) of: Vec<FlavorResource>,
    /// The queue's cell of each.
    pub(crate) cells: Vec<CellId>,
    pub(crate) evicted: BTreeSet<Key>,
    pub(crate) others: BTreeSet<Key>,
}

impl Group {
    /// Whether its workloads use any of these.
    pub(crate) fn uses_any(&self, of: &[FlavorResource]) -> bool {
        self.of.iter().any(|it| of.contains(it))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.evicted.is_empty() && self.others.is_empty()
    }
}

static NO_GROUP: Group = Group {
    of: Vec::new(),
    cells: Vec::new(),
    evicted: BTreeSet::new(),
    others: BTreeSet::new(),
};

/// What workloads use, by flavor, resource and priority.
type ByPriority = BTreeMap<(FlavorResource, i32), Amount>;

/// All running workloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// By queue.
    groups: Vec<Vec<Group>>,
    /// By queue.
    used: Vec<ByPriority>,
    /// By root of the tree.
    used_below: Vec<ByPriority>,
}

impl Index {
    /// Makes room for the nodes of the tree and takes over their cells and roots. To be called when
    /// the tree has changed.
    pub(crate) fn settle(&mut self, tree: &Tree) {
        let nodes = tree.nodes().count();
        self.groups.resize_with(nodes, Vec::new);
        self.used.resize_with(nodes, ByPriority::new);
        self.used_below.clear();
        self.used_below.resize_with(nodes, ByPriority::new);
        for (id, node) in tree.nodes() {
            for group in self.groups.get_mut(id.index()).into_iter().flatten() {
                group.cells = cells(tree, id, &group.of);
            }
            if let (Some(used), Some(below)) = (
                self.used.get(id.index()),
                self.used_below.get_mut(node.root.index()),
            ) {
                for (of, amount) in used {
                    book(below, *of, *amount);
                }
            }
        }
    }

    /// The group of a queue's workloads that use exactly these, which are sorted; made if there is none.
    pub(crate) fn group_for(&mut self, tree: &Tree, queue: NodeId, of: &[FlavorResource]) -> usize {
        let Some(groups) = self.groups.get_mut(queue.index()) else {
            return usize::MAX;
        };
        if let Some(at) = groups.iter().position(|group| group.of == of) {
            return at;
        }
        groups.push(Group {
            of: of.into(),
            cells: cells(tree, queue, of),
            ..Group::default()
        });
        groups.len().saturating_sub(1)
    }

    pub(crate) fn groups(&self, queue: NodeId) -> &[Group] {
        self.groups.get(queue.index()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn group(&self, queue: NodeId, group: usize) -> &Group {
        self.groups(queue).get(group).unwrap_or(&NO_GROUP)
    }

    /// The cells and amounts of what a workload uses.
    pub(crate) fn usage<'a>(
        &'a self,
        running: &'a Running,
    ) -> impl Iterator<Item = (CellId, Amount)> + 'a {
        let cells = &self.group(running.queue, running.group).cells;
        cells.iter().copied().zip(running.amounts.iter().copied())
    }

    pub(crate) fn insert(&mut self, tree: &Tree, id: WorkloadId, running: &Running) {
        self.change_sums(tree, running, Amount::plus);
        if let Some(group) = self.group_mut(running) {
            let set = if running.is_evicted {
                &mut group.evicted
            } else {
                &mut group.others
            };
            set.insert(running.key(id));
        }
    }

    pub(crate) fn remove(&mut self, tree: &Tree, id: WorkloadId, running: &Running) {
        self.change_sums(tree, running, Amount::minus);
        if let Some(group) = self.group_mut(running) {
            let set = if running.is_evicted {
                &mut group.evicted
            } else {
                &mut group.others
            };
            set.remove(&running.key(id));
        }
    }

    /// An upper bound of what the workloads of a queue with a priority below `below` use; `None` is
    /// any priority.
    pub(crate) fn used_by_queue(
        &self,
        queue: NodeId,
        of: FlavorResource,
        below: Option<i32>,
    ) -> Amount {
        self.used
            .get(queue.index())
            .map_or(Amount::ZERO, |used| sum(used, of, below))
    }

    /// The same of all queues below a root.
    pub(crate) fn used_by_tree(
        &self,
        root: NodeId,
        of: FlavorResource,
        below: Option<i32>,
    ) -> Amount {
        self.used_below
            .get(root.index())
            .map_or(Amount::ZERO, |used| sum(used, of, below))
    }

    fn group_mut(&mut self, running: &Running) -> Option<&mut Group> {
        self.groups
            .get_mut(running.queue.index())?
            .get_mut(running.group)
    }

    fn change_sums(
        &mut self,
        tree: &Tree,
        running: &Running,
        change: impl Fn(Amount, Amount) -> Amount,
    ) {
        let root = tree.node(running.queue).root;
        let Some(group) = self
            .groups
            .get(running.queue.index())
            .and_then(|groups| groups.get(running.group))
        else {
            return;
        };
        for (of, amount) in group.of.iter().zip(&running.amounts) {
            let key = (*of, running.priority);
            for (sums, node) in [
                (&mut self.used, running.queue),
                (&mut self.used_below, root),
            ] {
                if let Some(sums) = sums.get_mut(node.index()) {
                    let sum = sums.entry(key).or_default();
                    *sum = change(*sum, *amount);
                    if *sum == Amount::ZERO {
                        sums.remove(&key);
                    }
                }
            }
        }
    }
}

fn cells(tree: &Tree, queue: NodeId, of: &[FlavorResource]) -> Vec<CellId> {
    let node = tree.node(queue);
    let cell = |of: &FlavorResource| node.cell(*of).unwrap_or(CellId(u32::MAX));
    of.iter().map(cell).collect()
}

fn book(sums: &mut ByPriority, of: (FlavorResource, i32), amount: Amount) {
    let sum = sums.entry(of).or_default();
    *sum = sum.plus(amount);
}

fn sum(used: &ByPriority, of: FlavorResource, below: Option<i32>) -> Amount {
    let from = (of, i32::MIN);
    let add = |sum: Amount, (_, amount): (_, &Amount)| sum.plus(*amount);
    match below {
        Some(below) => used.range(from..(of, below)).fold(Amount::ZERO, add),
        None => used.range(from..=(of, i32::MAX)).fold(Amount::ZERO, add),
    }
}
