//! The nodes of the quota tree, their cells, and the propagation of usage to ancestors.

use super::spec::Quota;
use crate::amount::Amount;
use crate::ids::{CellId, FlavorId, FlavorResource, NodeId, ResourceId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The quota of one node for one flavor and resource. The terms are defined in [`crate::quota`].
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// The cell of the same flavor and resource at the parent.
    pub(crate) parent: Option<CellId>,
    pub(crate) node: NodeId,
    /// Whether the node or a descendant declares a quota, which may be zero. Otherwise there is only usage.
    pub(crate) has_quota: bool,
    pub(crate) nominal: Amount,
    pub(crate) subtree: Amount,
    pub(crate) local: Amount,
    pub(crate) potential: Amount,
    /// The most that the parent may contribute: the part of the subtree that is lent to it, plus the borrowing limit.
    /// Usage is not subtracted.
    pub(crate) ceiling: Amount,
}

static NO_CELL: Cell = Cell {
    parent: None,
    node: NodeId(u32::MAX),
    has_quota: false,
    nominal: Amount::ZERO,
    subtree: Amount::ZERO,
    local: Amount::ZERO,
    potential: Amount::ZERO,
    ceiling: Amount::UNLIMITED,
};

impl Cell {
    /// Returns the free part of the local quota.
    pub(crate) fn local_available(&self, usage: Amount) -> Amount {
        self.local.minus(usage).or_zero()
    }

    /// Returns the most that the parent may still contribute under the borrowing limit.
    pub(crate) fn borrowable(&self, usage: Amount) -> Amount {
        self.ceiling.minus(usage.minus(self.local).or_zero())
    }
}

/// A ClusterQueue or a cohort.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// `None` for the placeholder of an unknown id.
    name: Option<Arc<str>>,
    pub(crate) is_queue: bool,
    /// The parent in the spec. In a cohort cycle it differs from `parent`.
    declared_parent: Option<NodeId>,
    quotas: Vec<(FlavorResource, Quota)>,
    /// Flavors and resources that are used without declared quota.
    without_quota: BTreeSet<FlavorResource>,
    pub(crate) parent: Option<NodeId>,
    pub(crate) children: Vec<NodeId>,
    /// 0 for a queue or a cohort without children, 1 above queues only, and so on.
    pub(crate) height: u32,
    pub(crate) root: NodeId,
    /// Whether it is a queue that admits nothing at present. As in Kueue's snapshot, its usage counts and its workloads are no
    /// candidates.
    pub(crate) is_inactive: bool,
    /// Whether it is in a cohort cycle, or below one.
    pub(crate) is_misconfigured: bool,
    /// The weight of fair sharing.
    pub(crate) weight: f64,
    /// Sorted by flavor and resource.
    pub(crate) cells: Vec<(FlavorResource, CellId)>,
    /// By resource: the potential quota of all flavors of this cohort, which it could lend to a child.
    pub(crate) lendable: Vec<(ResourceId, Amount)>,
}

impl Node {
    const fn new(name: Option<Arc<str>>, is_queue: bool, id: NodeId) -> Self {
        Self {
            name,
            is_queue,
            declared_parent: None,
            quotas: Vec::new(),
            without_quota: BTreeSet::new(),
            parent: None,
            children: Vec::new(),
            height: 0,
            root: id,
            is_inactive: false,
            is_misconfigured: false,
            weight: 1.0,
            cells: Vec::new(),
            lendable: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns the cell of a flavor and resource; `None` if there is neither quota nor usage.
    pub(crate) fn cell(&self, of: FlavorResource) -> Option<CellId> {
        let key = of.key();
        let at = self.cells.binary_search_by_key(&key, |(of, _)| of.key());
        self.cells.get(at.ok()?).map(|(_, cell)| *cell)
    }

    /// Returns the cells of a flavor, sorted by resource.
    pub(crate) fn flavor_cells(&self, flavor: FlavorId) -> &[(FlavorResource, CellId)] {
        let from = self.cells.partition_point(|(of, _)| of.flavor < flavor);
        let cells = self.cells.get(from..).unwrap_or_default();
        let count = cells.iter().take_while(|(of, _)| of.flavor == flavor);
        cells.get(..count.count()).unwrap_or_default()
    }
}

static NO_NODE: Node = Node::new(None, true, NodeId(u32::MAX));

/// The usage of cells.
pub(crate) trait UsageStore {
    fn usage(&self, cell: CellId) -> Amount;
    /// Sets the usage. `from` is the usage before, which callers have just read.
    fn change(&mut self, cell: CellId, from: Amount, to: Amount);
}

impl UsageStore for Vec<Amount> {
    fn usage(&self, cell: CellId) -> Amount {
        self.get(cell.index()).copied().unwrap_or_default()
    }

    fn change(&mut self, cell: CellId, _: Amount, to: Amount) {
        if let Some(slot) = self.get_mut(cell.index()) {
            *slot = to;
        }
    }
}

/// All nodes and cells. Changes of nodes take effect at the next [`Tree::rebuild`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    cells: Vec<Cell>,
    is_dirty: bool,
}

impl Tree {
    /// Adds a node without quota and parent.
    pub(crate) fn add(&mut self, name: &str, is_queue: bool) -> NodeId {
        let id = NodeId::of(self.nodes.len());
        self.nodes.push(Node::new(Some(name.into()), is_queue, id));
        self.is_dirty = true;
        id
    }

    /// Sets the parent, the quotas and the weight of a node.
    pub(crate) fn declare(
        &mut self,
        node: NodeId,
        parent: Option<NodeId>,
        quotas: Vec<(FlavorResource, Quota)>,
        weight: f64,
    ) {
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.declared_parent = parent;
            node.quotas = quotas;
            node.weight = weight;
            self.is_dirty = true;
        }
    }

    /// Sets whether a queue admits workloads. Call it before [`Self::declare`].
    pub(crate) fn set_inactive(&mut self, node: NodeId, is_inactive: bool) {
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.is_inactive = is_inactive;
        }
    }

    /// Adds a cell for usage of a flavor and resource without declared quota, if it is missing.
    pub(crate) fn ensure_cell(&mut self, node: NodeId, of: FlavorResource) {
        if let Some(node) = self.nodes.get_mut(node.index())
            && node.without_quota.insert(of)
        {
            self.is_dirty = true;
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&NO_NODE)
    }

    pub(crate) fn cell(&self, id: CellId) -> &Cell {
        self.cells.get(id.index()).unwrap_or(&NO_CELL)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let numbered = self.nodes.iter().enumerate();
        numbered.map(|(index, node)| (NodeId::of(index), node))
    }

    /// Adds usage to a cell. The part that does not fit into its free local quota is added to its ancestors as well.
    pub(crate) fn add_usage(&self, usage: &mut impl UsageStore, cell: CellId, amount: Amount) {
        let (mut cell, mut amount) = (cell, amount);
        loop {
            let cell_quota = self.cell(cell);
            let before = usage.usage(cell);
            let free = cell_quota.local_available(before);
            usage.change(cell, before, before.plus(amount));
            match cell_quota.parent {
                // Local quota is used first; the parent sees only the rest (Kueue `addUsage`).
                Some(parent) if amount > free => {
                    amount = amount.minus(free);
                    cell = parent;
                }
                _ => return,
            }
        }
    }

    /// Reverts [`Self::add_usage`].
    pub(crate) fn remove_usage(&self, usage: &mut impl UsageStore, cell: CellId, amount: Amount) {
        let (mut cell, mut amount) = (cell, amount);
        loop {
            let cell_quota = self.cell(cell);
            let before = usage.usage(cell);
            // The part that `add_usage` passed to the parent: it is released there as well.
            let stored = before.minus(cell_quota.local);
            usage.change(cell, before, before.minus(amount));
            match cell_quota.parent {
                Some(parent) if stored > Amount::ZERO => {
                    amount = amount.min(stored);
                    cell = parent;
                }
                _ => return,
            }
        }
    }

    /// Applies the changes of nodes. Queues keep their usage; the usage of cohorts is recomputed.
    ///
    /// Costs the size of the tree, and nothing without changes.
    pub(crate) fn rebuild(&mut self, usage: &mut Vec<Amount>) {
        if !self.is_dirty {
            return;
        }
        self.is_dirty = false;
        let mut used = Vec::new();
        for (id, node) in self.nodes() {
            for (of, cell) in node.cells.iter().filter(|_| node.is_queue) {
                let amount = usage.usage(*cell);
                if amount != Amount::ZERO {
                    used.push((id, *of, amount));
                }
            }
        }
        // Usage keeps its cell even if its quota was removed.
        for (id, of, _) in &used {
            if let Some(node) = self.nodes.get_mut(id.index()) {
                node.without_quota.insert(*of);
            }
        }
        self.link();
        let order = self.top_down();
        self.compute_heights(&order);
        self.build_cells(&order);
        self.compute_cells(&order);
        self.compute_lendable();
        usage.clear();
        usage.resize(self.cells.len(), Amount::ZERO);
        for (node, of, amount) in used {
            if let Some(cell) = self.node(node).cell(of) {
                self.add_usage(usage, cell, amount);
            }
        }
    }

    /// Sets parents and children. Nodes in cohort cycles and below them get neither.
    fn link(&mut self) {
        let parents: Vec<Option<NodeId>> = self.nodes.iter().map(|it| it.declared_parent).collect();
        for node in &mut self.nodes {
            node.children.clear();
        }
        let mut open = Vec::new();
        for (index, parent) in parents.iter().enumerate() {
            let child = NodeId::of(index);
            match parent.and_then(|parent| self.nodes.get_mut(parent.index())) {
                Some(parent) => parent.children.push(child),
                None => open.push(child),
            }
        }
        // A node that is reachable from a root is not in a cycle.
        let mut is_found = vec![false; self.nodes.len()];
        while let Some(id) = open.pop() {
            if let Some(is_found) = is_found.get_mut(id.index()) {
                *is_found = true;
            }
            open.extend_from_slice(&self.node(id).children);
        }
        for (node, is_found) in self.nodes.iter_mut().zip(is_found) {
            node.is_misconfigured = !is_found;
            node.parent = node.declared_parent.filter(|_| is_found);
            if !is_found {
                node.children.clear();
            }
        }
    }

    /// Returns all nodes, each after its parent, and sets their roots.
    fn top_down(&mut self) -> Vec<NodeId> {
        let roots = self.nodes().filter(|(_, node)| node.parent.is_none());
        let mut order: Vec<NodeId> = roots.map(|(id, _)| id).collect();
        let mut next = 0;
        while let Some(id) = order.get(next).copied() {
            next = next.saturating_add(1);
            order.extend_from_slice(&self.node(id).children);
        }
        for id in &order {
            let root = self.node(*id).parent.map_or(*id, |it| self.node(it).root);
            if let Some(node) = self.nodes.get_mut(id.index()) {
                node.root = root;
            }
        }
        order
    }

    fn compute_heights(&mut self, top_down: &[NodeId]) {
        for id in top_down.iter().rev() {
            let node = self.node(*id);
            let below = node.children.iter().map(|child| self.node(*child));
            let below = below.filter(|it| !it.is_inactive).map(|it| it.height);
            let height = below.max().map_or(0, |highest| highest.saturating_add(1));
            if let Some(node) = self.nodes.get_mut(id.index()) {
                node.height = height;
            }
        }
    }

    /// Creates a cell for each flavor and resource that a node or a descendant has quota of or uses. A cohort also gets
    /// the cells of its ancestors.
    fn build_cells(&mut self, top_down: &[NodeId]) {
        let mut of: Vec<BTreeSet<FlavorResource>> = vec![BTreeSet::new(); self.nodes.len()];
        for id in top_down.iter().rev() {
            let node = self.node(*id);
            let own = node.quotas.iter().map(|(of, _)| *of);
            let own: Vec<_> = own.chain(node.without_quota.iter().copied()).collect();
            let mut all = of
                .get_mut(id.index())
                .map(std::mem::take)
                .unwrap_or_default();
            all.extend(own);
            if let Some(parent) = node.parent
                && let Some(above) = of.get_mut(parent.index())
            {
                above.extend(&all);
            }
            if let Some(slot) = of.get_mut(id.index()) {
                *slot = all;
            }
        }
        self.cells.clear();
        for id in top_down {
            let parent = self.node(*id).parent;
            let names = of.get_mut(id.index()).map(std::mem::take);
            let mut names = names.unwrap_or_default();
            if let Some(parent) = parent
                && !self.node(*id).is_queue
            {
                // The potential quota of the ancestors counts as lendable quota of the cohort.
                names.extend(self.node(parent).cells.iter().map(|(of, _)| *of));
            }
            let mut cells = Vec::new();
            for of in names {
                let parent = parent.and_then(|parent| self.node(parent).cell(of));
                cells.push((of, CellId::of(self.cells.len())));
                self.cells.push(Cell {
                    parent,
                    node: *id,
                    ..NO_CELL.clone()
                });
            }
            if let Some(node) = self.nodes.get_mut(id.index()) {
                node.cells = cells;
            }
        }
    }

    /// Computes subtree and local quota from the leaves up, then the potential quota from the roots down.
    fn compute_cells(&mut self, top_down: &[NodeId]) {
        let mut lent: Vec<Amount> = vec![Amount::ZERO; self.cells.len()];
        for id in top_down.iter().rev() {
            for (of, cell) in self.node(*id).cells.clone() {
                let named = self.quota(*id, of);
                let quota = named.unwrap_or_default();
                let from_below = lent.usage(cell);
                let subtree = quota.nominal.plus(from_below);
                let local = quota
                    .lending_limit
                    .map_or(Amount::ZERO, |limit| subtree.minus(limit).or_zero());
                let ceiling = quota
                    .borrowing_limit
                    .map_or(Amount::UNLIMITED, |it| subtree.minus(local).plus(it));
                let Some(slot) = self.cells.get_mut(cell.index()) else {
                    continue;
                };
                // Children come before their parent and may have set it already.
                slot.has_quota |= named.is_some();
                slot.nominal = quota.nominal;
                slot.subtree = subtree;
                slot.local = local;
                slot.ceiling = ceiling;
                let has_quota = slot.has_quota;
                if let Some(parent) = slot.parent {
                    let lent_here = subtree.minus(local);
                    let before = lent.usage(parent);
                    lent.change(parent, before, before.plus(lent_here));
                    if let Some(above) = self.cells.get_mut(parent.index()) {
                        above.has_quota |= has_quota;
                    }
                }
            }
        }
        for id in top_down {
            for (_, cell) in self.node(*id).cells.clone() {
                let cell_quota = self.cell(cell);
                let potential = cell_quota.parent.map_or(cell_quota.subtree, |parent| {
                    let from_above = self.cell(parent).potential;
                    // As if no quota were in use (Kueue `potentialAvailable`).
                    cell_quota.local.plus(from_above.min(cell_quota.ceiling))
                });
                if let Some(slot) = self.cells.get_mut(cell.index()) {
                    slot.potential = potential;
                }
            }
        }
    }

    fn quota(&self, node: NodeId, of: FlavorResource) -> Option<Quota> {
        let mut quotas = self.node(node).quotas.iter();
        quotas.find(|(it, _)| *it == of).map(|(_, quota)| *quota)
    }

    fn compute_lendable(&mut self) {
        for index in 0..self.nodes.len() {
            let node = self.node(NodeId::of(index));
            let mut lendable: Vec<(ResourceId, Amount)> = Vec::new();
            // All flavors of the tree count, even those that a child has no quota of (Kueue).
            for (of, cell) in node.cells.iter().filter(|_| !node.is_queue) {
                let potential = self.cell(*cell).potential;
                match lendable.iter_mut().find(|(it, _)| *it == of.resource) {
                    Some((_, sum)) => *sum = sum.plus(potential),
                    None => lendable.push((of.resource, potential)),
                }
            }
            if let Some(node) = self.nodes.get_mut(index) {
                node.lendable = lendable;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Amount, FlavorResource, Quota, ResourceId, Tree};
    use crate::ids::FlavorId;

    #[test]
    fn tree_quota_only_at_ancestors_is_lendable_without_queue_cell() {
        let of = |flavor| FlavorResource {
            flavor: FlavorId(flavor),
            resource: ResourceId(0),
        };
        let quota = |nominal| Quota {
            nominal: Amount::new(nominal),
            ..Quota::default()
        };
        let mut tree = Tree::default();
        let [root, cohort] = ["root", "cohort"].map(|name| tree.add(name, false));
        let queue = tree.add("queue", true);
        tree.declare(root, None, vec![(of(0), quota(5))], 1.0);
        tree.declare(cohort, Some(root), Vec::new(), 1.0);
        tree.declare(queue, Some(cohort), vec![(of(1), quota(2))], 1.0);
        tree.rebuild(&mut Vec::new());
        let lendable = [(ResourceId(0), Amount::new(7))];
        assert_eq!(tree.node(cohort).lendable, lendable);
        assert_eq!(tree.node(root).lendable, lendable);
        assert!(tree.node(queue).cell(of(0)).is_none());
    }
}
