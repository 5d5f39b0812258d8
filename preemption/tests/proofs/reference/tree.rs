//! The quota tree, built from the objects each time.

use crate::model::cluster_model::{ClusterModel, Limits, Pair};
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub is_queue: bool,
    pub parent: Option<usize>,
    pub children: Vec<usize>,
    pub limits: BTreeMap<Pair, Limits>,
    pub weight: f64,
    /// A queue that admits nothing: it counts for no height, and its workloads are no candidates.
    pub is_inactive: bool,
    /// On a cycle of cohorts or below one. Such a node has no parent.
    pub is_misconfigured: bool,
}

#[derive(Clone, Debug)]
pub struct Tree {
    pub nodes: Rc<Vec<Node>>,
    subtree: Rc<Vec<BTreeMap<Pair, i64>>>,
    usage: Vec<BTreeMap<Pair, i64>>,
}

/// A flavor and resource of a node.
fn at(amounts: &[BTreeMap<Pair, i64>], node: usize, pair: Pair) -> i64 {
    amounts[node].get(&pair).copied().unwrap_or(0)
}

impl Tree {
    pub fn new(cluster_model: &ClusterModel) -> Self {
        let mut tree = Self {
            nodes: Rc::new(nodes(cluster_model)),
            subtree: Rc::default(),
            usage: Vec::new(),
        };
        let mut subtree = vec![BTreeMap::new(); tree.nodes.len()];
        for root in tree.roots() {
            sum_up(&tree.nodes, root, &mut subtree);
        }
        tree.subtree = Rc::new(subtree);
        tree.usage = vec![BTreeMap::new(); tree.nodes.len()];
        for (workload, held) in cluster_model.admitted() {
            let queue = tree.index(&workload.queue, true);
            for (pair, amount) in &held.usage {
                *tree.usage[queue].entry(*pair).or_default() += amount;
            }
        }
        for root in tree.roots() {
            tree.propagate_usage(root);
        }
        tree
    }

    /// The usage of a cohort: the usage of its children beyond their local quota.
    fn propagate_usage(&mut self, node: usize) {
        let nodes = Rc::clone(&self.nodes);
        for child in &nodes[node].children {
            self.propagate_usage(*child);
            for (pair, used) in self.usage[*child].clone() {
                let beyond = (used - self.local(*child, pair)).max(0);
                *self.usage[node].entry(pair).or_default() += beyond;
            }
        }
    }

    pub fn roots(&self) -> Vec<usize> {
        let all = 0..self.nodes.len();
        all.filter(|it| self.nodes[*it].parent.is_none()).collect()
    }

    pub fn index(&self, name: &str, is_queue: bool) -> usize {
        let mut nodes = self.nodes.iter();
        nodes
            .position(|it| it.name == name && it.is_queue == is_queue)
            .expect("a node")
    }

    pub fn root(&self, node: usize) -> usize {
        self.path(node).last().copied().unwrap_or(node)
    }

    /// The ancestors of a node, from its parent to the root.
    pub fn path(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = node;
        while let Some(parent) = self.nodes[at].parent {
            path.push(parent);
            at = parent;
        }
        path
    }

    /// All nodes below a node, and itself.
    pub fn below(&self, node: usize) -> Vec<usize> {
        let mut all = vec![node];
        for child in &self.nodes[node].children {
            all.extend(self.below(*child));
        }
        all
    }

    pub fn limits(&self, node: usize, pair: Pair) -> Limits {
        let limits = self.nodes[node].limits.get(&pair);
        limits.copied().unwrap_or_default()
    }

    pub fn nominal(&self, node: usize, pair: Pair) -> i64 {
        self.limits(node, pair).nominal
    }

    pub fn usage(&self, node: usize, pair: Pair) -> i64 {
        at(&self.usage, node, pair)
    }

    pub fn subtree(&self, node: usize, pair: Pair) -> i64 {
        at(&self.subtree, node, pair)
    }

    /// The pairs with a quota of the node or of a node below it.
    pub fn pairs(&self, node: usize) -> Vec<Pair> {
        self.subtree[node].keys().copied().collect()
    }

    /// The quota that the node does not lend to its parent.
    pub fn local(&self, node: usize, pair: Pair) -> i64 {
        let lending = self.limits(node, pair).lending;
        lending.map_or(0, |limit| (self.subtree(node, pair) - limit).max(0))
    }

    pub fn local_available(&self, node: usize, pair: Pair) -> i64 {
        (self.local(node, pair) - self.usage(node, pair)).max(0)
    }

    pub fn add(&mut self, node: usize, pair: Pair, amount: i64) {
        let before = self.local_available(node, pair);
        *self.usage[node].entry(pair).or_default() += amount;
        if let Some(parent) = self.nodes[node].parent
            && amount > before
        {
            self.add(parent, pair, amount - before);
        }
    }

    pub fn remove(&mut self, node: usize, pair: Pair, amount: i64) {
        let stored = self.usage(node, pair) - self.local(node, pair);
        *self.usage[node].entry(pair).or_default() -= amount;
        if let Some(parent) = self.nodes[node].parent
            && stored > 0
        {
            self.remove(parent, pair, amount.min(stored));
        }
    }

    /// The amount that a node can still use; negative if it exceeds its quota.
    pub fn available(&self, node: usize, pair: Pair) -> i64 {
        let (subtree, usage) = (self.subtree(node, pair), self.usage(node, pair));
        let Some(parent) = self.nodes[node].parent else {
            return subtree - usage;
        };
        let mut from_parent = self.available(parent, pair);
        if let Some(limit) = self.limits(node, pair).borrowing {
            let local = self.local(node, pair);
            from_parent = from_parent.min((subtree - local) - (usage - local).max(0) + limit);
        }
        self.local_available(node, pair) + from_parent
    }

    /// The amount that a node could use if no workload ran.
    pub fn potential(&self, node: usize, pair: Pair) -> i64 {
        let subtree = self.subtree(node, pair);
        let Some(parent) = self.nodes[node].parent else {
            return subtree;
        };
        let all = self.local(node, pair) + self.potential(parent, pair);
        let limit = self.limits(node, pair).borrowing;
        limit.map_or(all, |limit| all.min(subtree + limit))
    }

    pub fn is_within_quota(&self, node: usize, pair: Pair) -> bool {
        self.usage(node, pair) <= self.subtree(node, pair)
    }

    /// 0 for a queue or a cohort without children, 1 above queues, and so on.
    pub fn height(&self, node: usize) -> u32 {
        let children = self.nodes[node].children.iter();
        let active = children.filter(|it| !self.nodes[**it].is_inactive);
        active.map(|it| self.height(*it) + 1).max().unwrap_or(0)
    }

    /// The height from which the quota for this amount comes, and whether quota beyond it could be reclaimed.
    pub fn level(&self, queue: usize, pair: Pair, amount: i64) -> (u32, bool) {
        let mut amount = amount;
        for node in [vec![queue], self.path(queue)].concat() {
            let is_root = self.nodes[node].parent.is_none();
            if self.usage(node, pair) + amount <= self.subtree(node, pair) {
                return (self.height(node), !is_root);
            }
            amount = (amount - self.local_available(node, pair)).max(0);
        }
        (self.height(self.root(queue)), false)
    }
}

fn nodes(cluster_model: &ClusterModel) -> Vec<Node> {
    let mut nodes = Vec::new();
    for name in cluster_model.cohort_names() {
        let declared = cluster_model.cohorts.get(&name);
        nodes.push(Node {
            is_queue: false,
            parent: None,
            children: Vec::new(),
            limits: declared.map(|it| it.quotas.clone()).unwrap_or_default(),
            weight: declared.map_or(1.0, |it| it.weight),
            is_inactive: false,
            is_misconfigured: false,
            name,
        });
    }
    let cohorts = nodes.len();
    let mut names: Vec<&String> = cluster_model.queues.keys().collect();
    names.extend(cluster_model.workloads.values().map(|it| &it.queue));
    names.sort();
    names.dedup();
    for name in names {
        let declared = cluster_model.queues.get(name);
        nodes.push(Node {
            name: name.clone(),
            is_queue: true,
            parent: None,
            children: Vec::new(),
            limits: declared
                .map(crate::model::cluster_model::Queue::limits)
                .unwrap_or_default(),
            weight: declared.map_or(1.0, |it| it.weight),
            is_inactive: declared.is_some_and(|it| !it.is_active),
            is_misconfigured: false,
        });
    }
    let cohort_at = |name: &String| nodes[..cohorts].iter().position(|it| it.name == *name);
    let declared: Vec<Option<usize>> = nodes
        .iter()
        .map(|node| {
            let parent = if node.is_queue {
                cluster_model.queues.get(&node.name)?.cohort.as_ref()
            } else {
                cluster_model.cohorts.get(&node.name)?.parent.as_ref()
            };
            parent.and_then(cohort_at)
        })
        .collect();
    for at in 0..nodes.len() {
        let mut steps = 0;
        let mut up = at;
        while let Some(parent) = declared[up]
            && steps <= nodes.len()
        {
            up = parent;
            steps += 1;
        }
        if steps > nodes.len() {
            nodes[at].is_misconfigured = true;
        } else if let Some(parent) = declared[at] {
            nodes[at].parent = Some(parent);
            nodes[parent].children.push(at);
        }
    }
    nodes
}

/// The quota of a node and what its children lend to it.
fn sum_up(nodes: &[Node], node: usize, subtree: &mut [BTreeMap<Pair, i64>]) {
    let own = nodes[node].limits.iter();
    subtree[node] = own.map(|(pair, limits)| (*pair, limits.nominal)).collect();
    for child in &nodes[node].children {
        sum_up(nodes, *child, subtree);
        for (pair, has) in subtree[*child].clone() {
            let limits = nodes[*child].limits.get(&pair);
            let lent = limits
                .and_then(|it| it.lending)
                .map_or(has, |it| it.min(has));
            *subtree[node].entry(pair).or_default() += lent;
        }
    }
}
