//! A plain reference of the quota tree, built from the objects without the core.

use crate::api::Api;
use crate::fields::{holds_quota, list, milli_cpu, number, text};
use lockkeeper_controller::{Kind, ObjectKey};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The objects that determine the limits: ClusterQueues and Cohorts.
pub type Limits = BTreeMap<(Kind, ObjectKey), Rc<Value>>;

/// The limits that the API server has.
pub fn current_limits(api: &Api) -> Limits {
    let kinds = [Kind::ClusterQueue, Kind::Cohort];
    let all = kinds.into_iter().flat_map(|kind| {
        let all = api.all(kind);
        all.map(move |(name, it)| ((kind, name.clone()), Rc::clone(it)))
    });
    all.collect()
}

/// Flavor and resource.
pub type Cell = (String, String);

#[derive(Default)]
struct Node {
    parent: Option<String>,
    children: Vec<String>,
    quotas: BTreeMap<Cell, Quota>,
    usage: BTreeMap<Cell, i64>,
    is_on_cycle: bool,
}

#[derive(Clone, Copy, Default)]
struct Quota {
    nominal: i64,
    borrowing: Option<i64>,
    lending: Option<i64>,
}

#[derive(Default)]
pub struct ReferenceTree {
    nodes: BTreeMap<String, Node>,
}

fn queue_node(name: &str) -> String {
    format!("queue {name}")
}

fn cohort_node(name: &str) -> String {
    format!("cohort {name}")
}

/// The usage of a workload, by flavor and resource, without its reclaimable pods.
pub fn usage(workload: &Value) -> BTreeMap<Cell, i64> {
    let mut out = BTreeMap::new();
    for assignment in list(workload, "/status/admission/podSetAssignments") {
        let reclaimable = list(workload, "/status/reclaimablePods");
        let mut reclaimable = reclaimable
            .iter()
            .filter(|it| it["name"] == assignment["name"]);
        let reclaimed = reclaimable.next().map_or(0, |it| number(it, "/count"));
        let count = number(assignment, "/count");
        for (resource, amount) in assignment["resourceUsage"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let flavor = assignment["flavors"][resource.as_str()].as_str();
            let cell = (flavor.unwrap_or_default().to_owned(), resource.clone());
            // The amounts of this test are multiples of the counts.
            *out.entry(cell).or_default() += milli_cpu(amount) / count.max(1) * (count - reclaimed);
        }
    }
    out.retain(|_, amount| *amount != 0);
    out
}

impl ReferenceTree {
    /// The tree of these limits, with the usage of those workloads that hold quota.
    pub fn from_objects<'a>(limits: &Limits, workloads: impl Iterator<Item = &'a Value>) -> Self {
        let mut tree = Self::default();
        for ((kind, name), object) in limits {
            let (key, parent) = match kind {
                Kind::ClusterQueue => (queue_node(name.name()), text(object, "/spec/cohortName")),
                _ => (cohort_node(name.name()), text(object, "/spec/parentName")),
            };
            let node = tree.nodes.entry(key).or_default();
            node.quotas = quotas(object);
            if !parent.is_empty() {
                node.parent = Some(cohort_node(parent));
                tree.nodes.entry(cohort_node(parent)).or_default();
            }
        }
        tree.link();
        for workload in workloads.filter(|it| holds_quota(it)) {
            let name = text(workload, "/status/admission/clusterQueue");
            let node = tree.nodes.entry(queue_node(name)).or_default();
            for (cell, amount) in usage(workload) {
                *node.usage.entry(cell).or_default() += amount;
            }
        }
        tree
    }

    fn link(&mut self) {
        let keys: Vec<String> = self.nodes.keys().cloned().collect();
        for key in &keys {
            let mut at = key.clone();
            let mut passed = BTreeSet::new();
            while let Some(parent) = self.nodes[&at].parent.clone() {
                if !passed.insert(at) {
                    self.nodes.get_mut(key).unwrap().is_on_cycle = true;
                    break;
                }
                at = parent;
            }
        }
        for key in &keys {
            if self.nodes[key].is_on_cycle {
                self.nodes.get_mut(key).unwrap().parent = None;
            }
        }
        for key in keys {
            if let Some(parent) = self.nodes[&key].parent.clone() {
                self.nodes.get_mut(&parent).unwrap().children.push(key);
            }
        }
    }

    fn quota(&self, key: &str, cell: &Cell) -> Quota {
        self.nodes[key]
            .quotas
            .get(cell)
            .copied()
            .unwrap_or_default()
    }

    fn subtree(&self, key: &str, cell: &Cell) -> i64 {
        let children = self.nodes[key].children.iter();
        let lent = children.map(|it| self.subtree(it, cell) - self.local(it, cell));
        self.quota(key, cell).nominal + lent.sum::<i64>()
    }

    /// The quota that the node does not lend to its parent.
    fn local(&self, key: &str, cell: &Cell) -> i64 {
        let lending = self.quota(key, cell).lending;
        lending.map_or(0, |lending| (self.subtree(key, cell) - lending).max(0))
    }

    fn used(&self, key: &str, cell: &Cell) -> i64 {
        let node = &self.nodes[key];
        let own = node.usage.get(cell).copied().unwrap_or_default();
        let beyond = |it: &String| (self.used(it, cell) - self.local(it, cell)).max(0);
        own + node.children.iter().map(beyond).sum::<i64>()
    }

    fn available_at(&self, key: &str, cell: &Cell) -> i64 {
        let (subtree, used) = (self.subtree(key, cell), self.used(key, cell));
        let Some(parent) = &self.nodes[key].parent else {
            return subtree - used;
        };
        let local = self.local(key, cell);
        let mut above = self.available_at(parent, cell);
        if let Some(limit) = self.quota(key, cell).borrowing {
            let used_above = (used - local).max(0);
            above = above.min(subtree - local - used_above + limit);
        }
        (local - used).max(0) + above
    }

    /// The quota that a queue could still use.
    pub fn available(&self, name: &str, cell: &Cell) -> i64 {
        let key = queue_node(name);
        if self.nodes.contains_key(&key) {
            self.available_at(&key, cell)
        } else {
            0
        }
    }

    pub fn is_on_cycle(&self, name: &str) -> bool {
        let node = self.nodes.get(&queue_node(name));
        node.is_some_and(|it| it.is_on_cycle)
    }

    /// The usage of a cell by all workloads of a queue.
    pub fn usage_of(&self, name: &str, cell: &Cell) -> i64 {
        let node = self.nodes.get(&queue_node(name));
        let usage = node.and_then(|it| it.usage.get(cell));
        usage.copied().unwrap_or_default()
    }

    /// The root of a queue's tree: queues with the same root share quota.
    pub fn root(&self, name: &str) -> String {
        let mut at = queue_node(name);
        while let Some(parent) = self.nodes.get(&at).and_then(|it| it.parent.clone()) {
            at = parent;
        }
        at
    }
}

fn quotas(object: &Value) -> BTreeMap<Cell, Quota> {
    let mut out = BTreeMap::new();
    let groups = list(object, "/spec/resourceGroups").iter();
    for flavor in groups.flat_map(|it| list(it, "/flavors")) {
        for resource in list(flavor, "/resources") {
            let cell = (
                text(flavor, "/name").to_owned(),
                text(resource, "/name").to_owned(),
            );
            let quota = Quota {
                nominal: milli_cpu(&resource["nominalQuota"]),
                borrowing: resource.get("borrowingLimit").map(milli_cpu),
                lending: resource.get("lendingLimit").map(milli_cpu),
            };
            out.insert(cell, quota);
        }
    }
    out
}
