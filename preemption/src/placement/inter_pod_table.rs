//! The pods around a preemptor, counted by topology domain.

use super::cluster::Cluster;
use super::counted_pods::{CountedPods, is_selected};
use super::inter_pod::{InterPodRejection, PodAffinityTerm};
use super::labels::Labels;
use super::pod::Pod;
use crate::ids::{HostId, PodId, ShapeId, SymbolId};
use std::collections::{BTreeMap, BTreeSet};

/// The index of a counter.
pub(super) type CounterId = usize;

/// The rules that pods around a preemptor impose on its pods, and the counters that these rules read. Computed once for each
/// decision: costs all pods and nodes times the counters.
///
/// Source: kube-scheduler v1.37, plugins `InterPodAffinity` and `PodTopologySpread`.
#[derive(Debug)]
pub struct InterPodTable<'a> {
    cluster: &'a Cluster,
    counters: Vec<PodCounter<'a>>,
    kinds: Vec<PodKind>,
    kind_of: BTreeMap<PodId, usize>,
    /// The counters of each pod that has one: bound pods, pods of the preemptor, and pods that have a room reserved.
    counted: BTreeMap<PodId, Vec<CounterId>>,
}

/// Counts pods by topology domain.
#[derive(Debug)]
struct PodCounter<'a> {
    counted: CountedPods<'a>,
    /// The domain of each node whose pods are counted, by node.
    domains: Vec<Option<SymbolId>>,
    /// The number of pods in each domain. Domains of a spread constraint are complete, also those without pods.
    counts: BTreeMap<SymbolId, i64>,
    total: i64,
    /// How many domains of a spread constraint have each number of pods; empty for others.
    histogram: BTreeMap<i64, usize>,
}

/// Pods of a preemptor with the same shape, namespace and labels.
#[derive(Debug)]
struct PodKind {
    key: KindKey,
    rules: Vec<PodRule>,
}

type KindKey = (ShapeId, SymbolId, Labels);

/// What a pod requires of the counts in the domains of its node.
#[derive(Debug)]
pub(super) enum PodRule {
    /// The count is zero.
    Without {
        counter: CounterId,
        rejection: InterPodRejection,
    },
    /// All counts are positive. If all counters are zero everywhere, the first pod that matches its own affinity is
    /// permitted.
    With {
        counters: Vec<CounterId>,
        is_self_match: bool,
    },
    /// The count with the pod exceeds that of no domain by more.
    Spread {
        counter: CounterId,
        topology_key: SymbolId,
        max_skew: i64,
        min_domains: usize,
    },
}

impl PodCounter<'_> {
    fn fill_histogram(&mut self) {
        if let CountedPods::Spread { .. } = self.counted {
            for count in self.counts.values() {
                let domains = self.histogram.entry(*count).or_default();
                *domains = domains.saturating_add(1);
            }
        }
    }
}

impl PodRule {
    const fn is_monotone(&self) -> bool {
        matches!(self, Self::Without { .. })
    }
}

impl<'a> InterPodTable<'a> {
    /// The table for the pods of a preemptor; `None` if nothing restricts them. `reserved` are pods that are not bound, but
    /// have a room on nodes.
    #[must_use]
    pub fn new(
        cluster: &'a Cluster,
        pods: &[PodId],
        reserved: impl Iterator<Item = PodId>,
    ) -> Option<Self> {
        let reserved: BTreeSet<PodId> = reserved.collect();
        let is_constrained = |it: &PodId| has_constraints(cluster, *it);
        // The usual case: costs the pods of the preemptor.
        if !cluster.inter_pod().has_anti_affinity()
            && !pods.iter().chain(&reserved).any(is_constrained)
        {
            return None;
        }
        let mut table = Self {
            cluster,
            counters: Vec::new(),
            kinds: Vec::new(),
            kind_of: BTreeMap::new(),
            counted: BTreeMap::new(),
        };
        table.add_kinds(pods);
        let shapes = table.shapes_with_anti_affinity(&reserved);
        for index in 0..table.kinds.len() {
            table.add_rules(index, &shapes);
        }
        if table.kinds.iter().all(|it| it.rules.is_empty()) {
            return None;
        }
        let bound = cluster.pods().filter(|(_, pod)| pod.host().is_some());
        let bound = bound.map(|(id, _)| id);
        for pod in bound.chain(reserved).chain(pods.iter().copied()) {
            table.count_pod(pod);
        }
        for counter in &mut table.counters {
            counter.fill_histogram();
        }
        Some(table)
    }

    /// The bound pods of a counter, and those of the preemptor.
    pub fn counted_pods(&self) -> impl Iterator<Item = PodId> + '_ {
        self.counted.keys().copied()
    }

    /// A number for pods of the preemptor that differ in nothing that decides about placement.
    pub(super) fn kind_of(&self, pod: PodId) -> usize {
        self.kind_of.get(&pod).copied().unwrap_or_default()
    }

    /// Whether only anti-affinity restricts a pod: then each added pod leaves less room.
    pub(super) fn is_monotone(&self, pod: PodId) -> bool {
        self.rules(pod).iter().all(PodRule::is_monotone)
    }

    /// Whether only anti-affinity restricts the pods of the preemptor: then their order has no effect.
    pub(super) fn is_order_irrelevant(&self) -> bool {
        let mut rules = self.kinds.iter().flat_map(|it| &it.rules);
        rules.all(PodRule::is_monotone)
    }

    pub(super) fn rules(&self, pod: PodId) -> &[PodRule] {
        let kind = self.kind_of.get(&pod);
        let kind = kind.and_then(|it| self.kinds.get(*it));
        kind.map_or(&[], |it| &it.rules)
    }

    pub(super) fn counters_of(&self, pod: PodId) -> &[CounterId] {
        self.counted.get(&pod).map_or(&[], |it| it)
    }

    /// The domains that must be empty for a pod on a node, each with its counter.
    pub(super) fn excluding_domains(&self, pod: PodId, host: HostId) -> Vec<(CounterId, SymbolId)> {
        let domains = self.rules(pod).iter().filter_map(|rule| match rule {
            PodRule::Without { counter, .. } => Some((*counter, self.domain(*counter, host)?)),
            _ => None,
        });
        domains.collect()
    }

    pub(super) const fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// The domain in which a counter counts the pods of a node.
    pub(super) fn domain(&self, counter: CounterId, host: HostId) -> Option<SymbolId> {
        let counter = self.counters.get(counter)?;
        counter.domains.get(host.index()).copied().flatten()
    }

    /// The number of bound pods in a domain.
    pub(super) fn count(&self, counter: CounterId, domain: SymbolId) -> i64 {
        let counter = self.counters.get(counter);
        let count = counter.and_then(|it| it.counts.get(&domain).copied());
        count.unwrap_or_default()
    }

    /// The number of bound pods in all domains.
    pub(super) fn total(&self, counter: CounterId) -> i64 {
        self.counters.get(counter).map_or(0, |it| it.total)
    }

    /// For each counter of a spread constraint, how many domains have each number of bound pods; empty for others.
    pub(super) fn histograms(&self) -> Vec<BTreeMap<i64, usize>> {
        let counters = self.counters.iter();
        counters.map(|it| it.histogram.clone()).collect()
    }

    /// Whether a counter knows a domain: always, except for spread constraints.
    pub(super) fn has_domain(&self, counter: CounterId, domain: SymbolId) -> bool {
        let counter = self.counters.get(counter);
        counter.is_some_and(|it| it.counts.contains_key(&domain))
    }

    /// The domains of the first affinity that a pod of the preemptor has to itself and other new pods, in the order of nodes:
    /// each with its nodes. Empty if there is none.
    pub(super) fn domains_to_try(&self, hosts: &[HostId]) -> Vec<Vec<HostId>> {
        let mut rules = self.kinds.iter().flat_map(|it| &it.rules);
        let counter = rules.find_map(|rule| match rule {
            PodRule::With { counters, .. } => counters.first(),
            _ => None,
        });
        let Some(counter) = counter else {
            return Vec::new();
        };
        let mut positions: BTreeMap<SymbolId, usize> = BTreeMap::new();
        let mut domains: Vec<Vec<HostId>> = Vec::new();
        for host in hosts {
            let Some(domain) = self.domain(*counter, *host) else {
                continue;
            };
            let at = *positions.entry(domain).or_insert(domains.len());
            match domains.get_mut(at) {
                Some(domain) => domain.push(*host),
                None => domains.push(vec![*host]),
            }
        }
        domains
    }

    fn add_kinds(&mut self, pods: &[PodId]) {
        let mut ids: BTreeMap<KindKey, usize> = BTreeMap::new();
        for id in pods {
            let Some(pod) = self.cluster.pod(*id) else {
                continue;
            };
            let key = (pod.shape(), pod.namespace(), pod.labels().clone());
            let next = self.kinds.len();
            let kind = *ids.entry(key.clone()).or_insert(next);
            if kind == next {
                let rules = Vec::new();
                self.kinds.push(PodKind { key, rules });
            }
            self.kind_of.insert(*id, kind);
        }
    }

    /// The shapes of bound, reserved and new pods that have anti-affinity.
    fn shapes_with_anti_affinity(&self, reserved: &BTreeSet<PodId>) -> BTreeSet<ShapeId> {
        let cluster = self.cluster;
        let reserved = reserved.iter().filter_map(|it| cluster.pod(*it));
        let new = self.kinds.iter().map(|it| it.key.0);
        let bound = cluster.inter_pod().shapes_with_anti_affinity();
        bound.chain(reserved.map(Pod::shape)).chain(new).collect()
    }

    /// The rules for a kind of pods, in the order in which kube-scheduler applies them.
    fn add_rules(&mut self, kind: usize, with_anti_affinity: &BTreeSet<ShapeId>) {
        let Some(key) = self.kinds.get(kind).map(|it| it.key.clone()) else {
            return;
        };
        let cluster = self.cluster;
        let (shape, namespace, labels) = &key;
        let constraints = &cluster.shape_of(*shape).inter_pod;
        let mut rules = Vec::new();
        for constraint in &constraints.spread {
            let counter = self.counter(CountedPods::Spread {
                constraint,
                namespace: *namespace,
                shape: *shape,
            });
            rules.push(PodRule::Spread {
                counter,
                topology_key: constraint.topology_key,
                max_skew: constraint.max_skew,
                min_domains: constraint.min_domains,
            });
        }
        let terms = &*constraints.affinity;
        if !terms.is_empty() {
            let counters = topology_keys(terms).into_iter().map(|topology_key| {
                self.counter(CountedPods::SelectedByAll {
                    topology_key,
                    terms,
                })
            });
            rules.push(PodRule::With {
                counters: counters.collect(),
                is_self_match: terms
                    .iter()
                    .all(|it| is_selected(cluster, it, *namespace, labels)),
            });
        }
        let terms = &*constraints.anti_affinity;
        let own = topology_keys(terms).into_iter().map(|topology_key| {
            let pods = CountedPods::SelectedByAny {
                topology_key,
                terms,
            };
            (pods, InterPodRejection::AntiAffinity)
        });
        let existing = self.shapes_rejecting(&key, with_anti_affinity);
        let existing = existing.into_iter().map(|(topology_key, shapes)| {
            let pods = CountedPods::OfShapes {
                topology_key,
                shapes,
            };
            (pods, InterPodRejection::ExistingAntiAffinity)
        });
        for (pods, rejection) in own.chain(existing) {
            let counter = self.counter(pods);
            rules.push(PodRule::Without { counter, rejection });
        }
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.rules = rules;
        }
    }

    /// The shapes whose anti-affinity selects a kind of pods, by the topology keys that nodes have. Costs the terms.
    fn shapes_rejecting(
        &self,
        kind: &KindKey,
        shapes: &BTreeSet<ShapeId>,
    ) -> BTreeMap<SymbolId, BTreeSet<ShapeId>> {
        let cluster = self.cluster;
        let mut by_key: BTreeMap<SymbolId, BTreeSet<ShapeId>> = BTreeMap::new();
        for shape in shapes {
            for term in &cluster.shape_of(*shape).inter_pod.anti_affinity {
                if is_selected(cluster, term, kind.1, &kind.2) {
                    by_key.entry(term.topology_key).or_default().insert(*shape);
                }
            }
        }
        // Tenants can name any key, each of which would need a counter.
        let mut missing: BTreeSet<SymbolId> = by_key.keys().copied().collect();
        for host in cluster.hosts().filter_map(|it| cluster.host(it)) {
            if missing.is_empty() {
                break;
            }
            for (key, _) in host.labels().pairs() {
                missing.remove(key);
            }
        }
        by_key.retain(|key, _| !missing.contains(key));
        by_key
    }

    /// The counter of these pods.
    fn counter(&mut self, counted: CountedPods<'a>) -> CounterId {
        if let Some(at) = self.counters.iter().position(|it| it.counted == counted) {
            return at;
        }
        let mut domains = vec![None; self.cluster.hosts_len()];
        let mut counts = BTreeMap::new();
        for id in self.cluster.hosts() {
            let Some(host) = self.cluster.host(id) else {
                continue;
            };
            let domain = counted.domain(self.cluster, host);
            // The domain with the fewest pods may have none.
            if let (CountedPods::Spread { .. }, Some(domain)) = (&counted, domain) {
                counts.insert(domain, 0);
            }
            if let Some(slot) = domains.get_mut(id.index()) {
                *slot = domain;
            }
        }
        self.counters.push(PodCounter {
            counted,
            domains,
            counts,
            total: 0,
            histogram: BTreeMap::new(),
        });
        self.counters.len().saturating_sub(1)
    }

    /// Finds the counters of a pod, and counts it in the domains of its node.
    fn count_pod(&mut self, id: PodId) {
        let Some(pod) = self.cluster.pod(id) else {
            return;
        };
        let mut counters = Vec::new();
        for (at, counter) in self.counters.iter_mut().enumerate() {
            if !counter.counted.contains(self.cluster, pod) {
                continue;
            }
            counters.push(at);
            let host = pod.host();
            let domain = host.and_then(|it| counter.domains.get(it.index()).copied().flatten());
            if let Some(domain) = domain {
                let count = counter.counts.entry(domain).or_default();
                *count = count.saturating_add(1);
                counter.total = counter.total.saturating_add(1);
            }
        }
        if !counters.is_empty() {
            self.counted.insert(id, counters);
        }
    }
}

/// The different topology keys, in the order of the terms: that of the ids depends on earlier events.
fn topology_keys(terms: &[PodAffinityTerm]) -> Vec<SymbolId> {
    let mut seen = BTreeSet::new();
    let keys = terms.iter().map(|it| it.topology_key);
    keys.filter(|it| seen.insert(*it)).collect()
}

fn has_constraints(cluster: &Cluster, pod: PodId) -> bool {
    let pod = cluster.pod(pod);
    pod.is_some_and(|it| !cluster.shape_of(it.shape()).inter_pod.is_empty())
}
