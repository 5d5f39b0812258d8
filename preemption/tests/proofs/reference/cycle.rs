//! The entries of a cycle in order, each in the state that the earlier ones left.

use super::nominate::nominate;
use super::order::{NominatedEntry, next};
use super::tree::Tree;
use super::{Snapshot, flavors::TriedFlavors};
use crate::model::cluster_model::{ClusterModel, Pair};
use crate::model::named_decisions::{NamedDecision, NamedEntry, NamedVictim};
use lockkeeper_preemption::{BorrowingGate, Compatibility, Mode, ReclaimWithinCohort, SkipReason};
use std::collections::{BTreeMap, BTreeSet};

/// An entry, and the flavors where the next nomination continues.
pub struct ProcessedEntry {
    pub entry: NamedEntry,
    pub tried_flavors: TriedFlavors,
}

struct EntryProcessor<'a> {
    /// With all reservations of this cycle; the victims still count.
    snapshot: Snapshot<'a>,
    /// With the admissions of this cycle only.
    admitted_tree: Tree,
    victims: BTreeSet<String>,
    /// Roots of trees in which no further entry may borrow in this cycle.
    roots_closed_to_borrowing: BTreeSet<usize>,
}

/// Decides on heads with their tried flavors, in the order of their queues' names.
pub fn decide(
    cluster_model: &ClusterModel,
    heads: &[(String, TriedFlavors)],
) -> Vec<ProcessedEntry> {
    let snapshot = Snapshot::new(cluster_model);
    let mut waiting: Vec<NominatedEntry<'_>> = heads
        .iter()
        .map(|(name, marker)| {
            let workload = &cluster_model.workloads[name];
            NominatedEntry {
                workload,
                nominated: nominate(&snapshot, workload, marker, None),
            }
        })
        .collect();
    let mut round = EntryProcessor {
        admitted_tree: snapshot.tree.clone(),
        snapshot,
        victims: BTreeSet::new(),
        roots_closed_to_borrowing: BTreeSet::new(),
    };
    let mut done = Vec::new();
    while !waiting.is_empty() {
        let at = next(&round.snapshot, &waiting);
        done.push(round.process(waiting.remove(at)));
    }
    done
}

impl<'a> EntryProcessor<'a> {
    fn process(&mut self, nominee: NominatedEntry<'a>) -> ProcessedEntry {
        let nominated = nominee.nominated.clone();
        let mut nominee = nominee;
        let mut recomputed = None;
        let mut decided = None;
        let may_recompute = !self.snapshot.cluster_model.options.disable_recomputation;
        if self.has_overlapping_victims(&nominee.nominated.victims) && may_recompute {
            let mut without = self.snapshot.clone();
            self.victims.iter().for_each(|it| without.remove(it));
            without.removed.clone_from(&self.victims);
            let only = Some(&nominated.plan);
            let again = nominate(&without, nominee.workload, &TriedFlavors::new(), only);
            recomputed = Some(again.plan.clone());
            if again.plan.mode == Mode::Fit {
                decided = Some(NamedDecision::DeferredFit);
            }
            nominee.nominated = again;
        }
        let decided = decided.unwrap_or_else(|| self.decide_entry(&nominee));
        let reserved = self.reserve(&nominee, &decided);
        if let NamedDecision::Preempt(victims) = &decided {
            let names = victims.iter().map(|(name, _)| name.clone());
            self.victims.extend(names);
        }
        let plan = &nominee.nominated.plan;
        if self.snapshot.cluster_model.options.borrowing_gate == BorrowingGate::Cohort
            && plan.level == 0
            && plan.mode != Mode::NoFit
        {
            let root = self.snapshot.tree.root(self.queue(&nominee));
            self.roots_closed_to_borrowing.insert(root);
        }
        let mut marker = TriedFlavors::new();
        for (at, pod_set) in plan.pod_sets.iter().enumerate() {
            for flavor in &pod_set.flavors {
                if let Some(index) = flavor.tried_flavor_index {
                    marker.insert((at, flavor.resource), index);
                }
            }
        }
        let entry = NamedEntry {
            workload: nominee.workload.name.clone(),
            nominated,
            recomputed,
            decision: decided,
            reserved,
            requeued: None,
        };
        ProcessedEntry {
            entry,
            tried_flavors: marker,
        }
    }

    fn queue(&self, nominee: &NominatedEntry<'_>) -> usize {
        self.snapshot.tree.index(&nominee.workload.queue, true)
    }

    fn has_overlapping_victims(&self, victims: &[NamedVictim]) -> bool {
        victims.iter().any(|(it, _)| self.victims.contains(it))
    }

    fn decide_entry(&self, nominee: &NominatedEntry<'_>) -> NamedDecision {
        let (plan, victims) = (&nominee.nominated.plan, &nominee.nominated.victims);
        if plan.mode == Mode::NoFit {
            return NamedDecision::NoFit;
        }
        if plan.mode == Mode::Preempt && victims.is_empty() {
            return NamedDecision::NoCandidates;
        }
        if self.has_overlapping_victims(victims) {
            return NamedDecision::Skip(SkipReason::OverlappingVictims);
        }
        let mut without = self.snapshot.clone();
        self.victims.iter().for_each(|it| without.remove(it));
        for (victim, _) in victims {
            without.remove(victim);
        }
        let queue = self.queue(nominee);
        let fits =
            |(pair, amount): (&Pair, &i64)| *amount <= without.tree.available(queue, *pair).max(0);
        if !plan.usage.iter().all(fits) {
            return NamedDecision::Skip(SkipReason::NoLongerFits);
        }
        if plan.level > 0
            && self
                .roots_closed_to_borrowing
                .contains(&self.snapshot.tree.root(queue))
        {
            return NamedDecision::Skip(SkipReason::BorrowingGate);
        }
        if plan.mode == Mode::Fit {
            // Not with quota of workloads that still run, even though Kueue does so.
            let fits_now = |(pair, amount): (&Pair, &i64)| {
                *amount <= self.admitted_tree.available(queue, *pair).max(0)
            };
            let is_kueue =
                self.snapshot.cluster_model.options.compatibility == Compatibility::Kueue;
            if is_kueue || self.victims.is_empty() || plan.usage.iter().all(fits_now) {
                NamedDecision::Admit
            } else {
                NamedDecision::DeferredFit
            }
        } else {
            NamedDecision::Preempt(victims.clone())
        }
    }

    /// Reserves quota for an entry for the rest of the cycle.
    fn reserve(
        &mut self,
        nominee: &NominatedEntry<'_>,
        decided: &NamedDecision,
    ) -> BTreeMap<Pair, i64> {
        let cluster_model = self.snapshot.cluster_model;
        let queue = self.queue(nominee);
        let plan = &nominee.nominated.plan;
        let mut reserved = match decided {
            NamedDecision::Admit | NamedDecision::Preempt(_) | NamedDecision::DeferredFit => {
                plan.usage.clone()
            }
            NamedDecision::Skip(_) | NamedDecision::NoFit => BTreeMap::new(),
            NamedDecision::NoCandidates => {
                let policy = cluster_model.queues[&nominee.workload.queue].preemption;
                if policy.reclaim_within_cohort == ReclaimWithinCohort::Any {
                    BTreeMap::new()
                } else {
                    // Includes requests of 0: where the queue exceeds its limit, Kueue reserves a negative amount.
                    let flavors = plan.pod_sets.iter().flat_map(|it| &it.flavors);
                    let pairs = flavors.map(|it| (it.flavor, it.resource));
                    pairs
                        .map(|pair| {
                            let amount = plan.usage.get(&pair).copied().unwrap_or(0);
                            (
                                pair,
                                self.amount_to_reserve(queue, pair, amount, plan.level),
                            )
                        })
                        .collect()
                }
            }
        };
        reserved.retain(|_, amount| *amount != 0);
        for (pair, amount) in &reserved {
            self.snapshot.tree.add(queue, *pair, *amount);
            if *decided == NamedDecision::Admit {
                self.admitted_tree.add(queue, *pair, *amount);
            }
        }
        reserved
    }

    /// The amount to reserve for a preemptor without victims.
    fn amount_to_reserve(&self, queue: usize, pair: Pair, amount: i64, level: u32) -> i64 {
        let tree = &self.snapshot.tree;
        let limits = tree.limits(queue, pair);
        let used = tree.usage(queue, pair);
        if level == 0 {
            return amount.min(limits.nominal - used).max(0);
        }
        let held = limits
            .borrowing
            .map_or(amount, |limit| amount.min(limits.nominal + limit - used));
        if self.snapshot.cluster_model.options.compatibility == Compatibility::Kueue {
            held
        } else {
            held.max(0)
        }
    }
}
