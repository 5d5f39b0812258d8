//! Hypothetical changes on top of the pods that an [`InterPodTable`] counts.

use super::inter_pod::InterPodRejection;
use super::inter_pod_table::{CounterId, InterPodTable, PodRule};
use crate::ids::{HostId, PodId, SymbolId};
use std::collections::BTreeMap;

/// The number of pods in each domain after some were added and removed.
#[derive(Debug)]
pub struct InterPodCounts<'a> {
    table: &'a InterPodTable<'a>,
    /// The difference to the bound pods.
    changes: BTreeMap<(CounterId, SymbolId), i64>,
    totals: Vec<i64>,
    /// For each counter of a spread constraint, how many domains have each number of pods.
    histograms: Vec<BTreeMap<i64, usize>>,
    journal: Vec<(CounterId, SymbolId, i64)>,
}

/// A point to roll back to.
#[derive(Clone, Copy, Debug)]
pub struct CountsMark(usize);

impl<'a> InterPodCounts<'a> {
    /// The bound pods.
    #[must_use]
    pub fn new(table: &'a InterPodTable<'a>) -> Self {
        let histograms = table.histograms();
        Self {
            table,
            changes: BTreeMap::new(),
            totals: vec![0; histograms.len()],
            histograms,
            journal: Vec::new(),
        }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &'a InterPodTable<'a> {
        self.table
    }

    /// Adds a pod to a node.
    pub fn add(&mut self, pod: PodId, host: HostId) {
        self.change(pod, host, 1);
    }

    /// Removes a pod from a node.
    pub fn remove(&mut self, pod: PodId, host: HostId) {
        self.change(pod, host, -1);
    }

    /// A mark of the current state.
    #[must_use]
    pub fn mark(&self) -> CountsMark {
        CountsMark(self.journal.len())
    }

    /// Reverts all changes since a mark. Costs the number of changes.
    pub fn roll_back(&mut self, mark: CountsMark) {
        while self.journal.len() > mark.0 {
            let Some((counter, domain, by)) = self.journal.pop() else {
                return;
            };
            self.apply(counter, domain, by.saturating_neg());
        }
    }

    /// The domains in which pods were added or removed since a mark.
    pub(super) fn changed_since(
        &self,
        mark: CountsMark,
    ) -> impl Iterator<Item = (CounterId, SymbolId)> + '_ {
        let changed = self.journal.get(mark.0..).unwrap_or_default();
        changed.iter().map(|it| (it.0, it.1))
    }

    /// Why a pod of the preemptor, which is not added yet, cannot run on a node; `None` if it can.
    ///
    /// Source: kube-scheduler v1.37, `Filter` of `InterPodAffinity` and of `PodTopologySpread`.
    #[must_use]
    pub fn rejection_of(&self, pod: PodId, host: HostId) -> Option<InterPodRejection> {
        let mut rules = self.table.rules(pod).iter();
        rules.find_map(|rule| self.rejection_by(rule, pod, host, 0))
    }

    /// Why a pod of the preemptor that is added to a node already could not be there beside the others, if only anti-affinity
    /// restricts it; `None` if it could.
    pub(super) fn rejection_of_added(&self, pod: PodId, host: HostId) -> Option<InterPodRejection> {
        let mut rules = self.table.rules(pod).iter();
        rules.find_map(|rule| self.rejection_by(rule, pod, host, 1))
    }

    /// `own` is how often the pod itself is counted.
    fn rejection_by(
        &self,
        rule: &PodRule,
        pod: PodId,
        host: HostId,
        own: i64,
    ) -> Option<InterPodRejection> {
        let is_counted = |counter: &CounterId| self.table.counters_of(pod).contains(counter);
        match rule {
            PodRule::Without { counter, rejection } => {
                let domain = self.table.domain(*counter, host)?;
                let own = if is_counted(counter) { own } else { 0 };
                let others = self.count(*counter, domain).saturating_sub(own);
                (others > 0).then_some(*rejection)
            }
            PodRule::With {
                counters,
                is_self_match,
            } => {
                let is_met = self.is_affinity_met(counters, *is_self_match, host);
                (!is_met).then_some(InterPodRejection::Affinity)
            }
            PodRule::Spread {
                counter,
                topology_key: key,
                max_skew,
                min_domains,
            } => {
                let node = self.table.cluster().host(host);
                let Some(domain) = node.and_then(|it| it.labels().get(*key)) else {
                    return Some(InterPodRejection::MissingTopologyKey { key: *key });
                };
                let new = i64::from(is_counted(counter));
                let count = self.count(*counter, domain).saturating_add(new);
                let skew = count.saturating_sub(self.fewest(*counter, *min_domains));
                (skew > *max_skew).then_some(InterPodRejection::TopologySpread { key: *key })
            }
        }
    }

    fn is_affinity_met(&self, counters: &[CounterId], is_self_match: bool, host: HostId) -> bool {
        let mut is_present = true;
        for counter in counters {
            let Some(domain) = self.table.domain(*counter, host) else {
                return false;
            };
            is_present &= self.count(*counter, domain) > 0;
        }
        // Otherwise the first pods of a workload with affinity to each other could not start.
        is_present || is_self_match && counters.iter().all(|it| self.total(*it) <= 0)
    }

    /// The number of pods in the domain with the fewest.
    fn fewest(&self, counter: CounterId, min_domains: usize) -> i64 {
        let Some(histogram) = self.histograms.get(counter) else {
            return 0;
        };
        let domains: usize = histogram.values().sum();
        if domains < min_domains {
            return 0;
        }
        // Without a domain nothing is uneven: as in kube-scheduler, the fewest are then very many.
        let fewest = histogram.first_key_value().map(|it| *it.0);
        fewest.unwrap_or(i64::from(i32::MAX))
    }

    fn count(&self, counter: CounterId, domain: SymbolId) -> i64 {
        let change = self.changes.get(&(counter, domain)).copied();
        let bound = self.table.count(counter, domain);
        bound.saturating_add(change.unwrap_or_default())
    }

    fn total(&self, counter: CounterId) -> i64 {
        let change = self.totals.get(counter).copied().unwrap_or_default();
        self.table.total(counter).saturating_add(change)
    }

    fn change(&mut self, pod: PodId, host: HostId, by: i64) {
        let table = self.table;
        for counter in table.counters_of(pod) {
            if let Some(domain) = table.domain(*counter, host) {
                self.journal.push((*counter, domain, by));
                self.apply(*counter, domain, by);
            }
        }
    }

    fn apply(&mut self, counter: CounterId, domain: SymbolId, by: i64) {
        let before = self.count(counter, domain);
        let change = self.changes.entry((counter, domain)).or_default();
        *change = change.saturating_add(by);
        if let Some(total) = self.totals.get_mut(counter) {
            *total = total.saturating_add(by);
        }
        let is_spread = self.table.has_domain(counter, domain);
        let histogram = self.histograms.get_mut(counter);
        let Some(histogram) = histogram.filter(|it| is_spread && !it.is_empty()) else {
            return;
        };
        if let Some(domains) = histogram.get_mut(&before) {
            *domains = domains.saturating_sub(1);
            if *domains == 0 {
                histogram.remove(&before);
            }
        }
        let domains = histogram.entry(before.saturating_add(by)).or_default();
        *domains = domains.saturating_add(1);
    }
}
