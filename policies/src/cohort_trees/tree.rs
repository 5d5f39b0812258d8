//! The quota trees of one project, kept up to date object by object.

use super::node::{FlavorFacts, Node, NodeFacts, NodeKind};
use super::summary::Summaries;
use crate::multimap::{add_to, remove_from};
use crate::object_ref::{ObjectName, Referrers};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The quota trees of one project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    nodes: BTreeMap<Node, Arc<NodeFacts>>,
    children: BTreeMap<String, BTreeSet<Node>>,
    users: BTreeMap<String, BTreeSet<Node>>,
    flavors: BTreeMap<String, FlavorFacts>,
    same_nodes: BTreeMap<String, BTreeSet<String>>,
    local_queues: BTreeMap<String, BTreeSet<ObjectName>>,
    equal_preemptors: BTreeSet<Node>,
    is_ambiguous: bool,
    pub(super) summaries: Summaries,
}

/// Trees without objects.
pub(crate) static EMPTY: Tree = Tree::new();

impl Tree {
    pub(super) const fn new() -> Self {
        Self {
            nodes: BTreeMap::new(),
            children: BTreeMap::new(),
            users: BTreeMap::new(),
            flavors: BTreeMap::new(),
            same_nodes: BTreeMap::new(),
            local_queues: BTreeMap::new(),
            equal_preemptors: BTreeSet::new(),
            is_ambiguous: false,
            summaries: Summaries::new(),
        }
    }

    /// Whether an object has several versions, as in the files of several clusters. Lookups of single objects still
    /// work, but rules about whole trees do not run.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    pub(crate) fn set_ambiguous(&mut self) {
        self.is_ambiguous = true;
    }

    /// A ClusterQueue or a Cohort.
    #[must_use]
    pub fn node(&self, kind: NodeKind, name: &str) -> Option<&NodeFacts> {
        let facts = self.nodes.get(&(kind, name.to_owned()))?;
        Some(facts)
    }

    /// The ClusterQueues and Cohorts in a cohort, queues first, by name.
    pub fn children(&self, cohort: &str) -> impl Iterator<Item = &Node> {
        self.children.get(cohort).into_iter().flatten()
    }

    /// The names of ClusterQueues.
    pub fn queues(&self) -> impl Iterator<Item = &str> {
        let queues = self.nodes.keys();
        queues
            // Queues sort before cohorts.
            .take_while(|(kind, _)| *kind == NodeKind::Queue)
            .map(|(_, name)| name.as_str())
    }

    /// Whether another ClusterQueue exists.
    #[must_use]
    pub fn has_other_queue(&self, name: &str) -> bool {
        self.queues().any(|queue| queue != name)
    }

    /// The names of the flavors.
    pub fn flavors(&self) -> impl Iterator<Item = &str> {
        self.flavors.keys().map(String::as_str)
    }

    /// The ClusterQueues and Cohorts with quota of this flavor.
    pub fn users(&self, flavor: &str) -> impl Iterator<Item = (&Node, &NodeFacts)> {
        let users = self.users.get(flavor).into_iter().flatten();
        users.filter_map(|node| Some((node, &**self.nodes.get(node)?)))
    }

    /// Whether a flavor of this name exists.
    #[must_use]
    pub fn has_flavor(&self, name: &str) -> bool {
        self.flavors.contains_key(name)
    }

    /// The other flavors with the same nodes.
    pub fn same_node_flavors(&self, flavor: &str) -> impl Iterator<Item = &str> {
        let facts = self.flavors.get(flavor);
        let nodes = facts.and_then(|it| it.nodes.as_ref());
        let alike = nodes.and_then(|it| self.same_nodes.get(it));
        let names = alike.into_iter().flatten().map(String::as_str);
        names.filter(move |name| *name != flavor)
    }

    /// The LocalQueues of this ClusterQueue.
    #[must_use]
    pub fn local_queues(&self, queue: &str, limit: usize) -> Referrers {
        Referrers::from_set(self.local_queues.get(queue), limit)
    }

    /// Whether workloads of any ClusterQueue may preempt others of the same priority.
    #[must_use]
    pub fn preempts_equals(&self) -> bool {
        !self.equal_preemptors.is_empty()
    }

    pub(crate) fn insert_node(&mut self, kind: NodeKind, name: &str, facts: &Arc<NodeFacts>) {
        // A node can change the results of every queue of its tree.
        self.summaries.clear();
        let node = (kind, name.to_owned());
        if let Some(above) = &facts.parent {
            add_to(&mut self.children, above, node.clone());
        }
        for flavor in facts.quotas.flavors() {
            add_to(&mut self.users, flavor, node.clone());
        }
        if facts.preempts_equals {
            self.equal_preemptors.insert(node.clone());
        }
        self.nodes.insert(node, Arc::clone(facts));
    }

    pub(crate) fn remove_node(&mut self, kind: NodeKind, name: &str, facts: &NodeFacts) {
        self.summaries.clear();
        let node = (kind, name.to_owned());
        if let Some(above) = &facts.parent {
            remove_from(&mut self.children, above, &node);
        }
        for flavor in facts.quotas.flavors() {
            remove_from(&mut self.users, flavor, &node);
        }
        if facts.preempts_equals {
            self.equal_preemptors.remove(&node);
        }
        self.nodes.remove(&node);
    }

    pub(crate) fn insert_flavor(&mut self, name: &str, facts: &FlavorFacts) {
        if let Some(nodes) = &facts.nodes {
            add_to(&mut self.same_nodes, nodes, name.to_owned());
        }
        self.flavors.insert(name.to_owned(), facts.clone());
    }

    pub(crate) fn remove_flavor(&mut self, name: &str, facts: &FlavorFacts) {
        if let Some(nodes) = &facts.nodes {
            remove_from(&mut self.same_nodes, nodes, &name.to_owned());
        }
        self.flavors.remove(name);
    }

    pub(crate) fn insert_local_queue(&mut self, name: &ObjectName, queue: &str) {
        add_to(&mut self.local_queues, queue, name.clone());
    }

    pub(crate) fn remove_local_queue(&mut self, name: &ObjectName, queue: &str) {
        remove_from(&mut self.local_queues, queue, name);
    }
}
