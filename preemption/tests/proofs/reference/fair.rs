//! Victims by dominant resource shares.

use super::tree::Tree;
use super::{Preemptor, Snapshot, candidate_order, fill_back};
use crate::model::cluster_model::{Pair, RESOURCES};
use crate::model::named_decisions::NamedVictim;
use lockkeeper_preemption::{FairStrategy, PreemptionReason};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, Debug)]
pub struct DominantShare {
    pub ratio: f64,
    pub weight: f64,
    pub is_borrowing: bool,
}

impl DominantShare {
    pub fn for_node(tree: &Tree, node: usize) -> Self {
        let mut share = Self {
            ratio: 0.0,
            weight: tree.nodes[node].weight,
            is_borrowing: false,
        };
        let Some(parent) = tree.nodes[node].parent else {
            return share;
        };
        let known = tree.pairs(tree.root(node));
        for resource in 0..RESOURCES.len() {
            let of_resource = |pair: &&Pair| pair.1 == resource;
            let own = tree.pairs(node);
            let over = own.iter().filter(of_resource);
            let over = over.map(|it| (tree.usage(node, *it) - tree.subtree(node, *it)).max(0));
            let over: i64 = over.sum();
            let lendable = known.iter().filter(of_resource);
            let lendable: i64 = lendable.map(|it| tree.potential(parent, *it)).sum();
            if over > 0 {
                share.is_borrowing = true;
                if lendable > 0 {
                    share.ratio = share.ratio.max(float(over) * 1000.0 / float(lendable));
                }
            }
        }
        share
    }

    pub fn cmp(&self, other: &Self) -> Ordering {
        let has_no_weight = |it: &Self| it.weight == 0.0 && it.ratio > 0.0;
        let value = |share: &Self| {
            if share.ratio == 0.0 {
                0.0
            } else {
                share.ratio / share.weight
            }
        };
        match (has_no_weight(self), has_no_weight(other)) {
            (true, true) => self.ratio.partial_cmp(&other.ratio).unwrap(),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => value(self).partial_cmp(&value(other)).unwrap(),
        }
    }
}

fn float(amount: i64) -> f64 {
    i32::try_from(amount).expect("amounts are small").into()
}

/// The remaining candidates, by queue.
type Lists = BTreeMap<usize, VecDeque<String>>;

struct Search<'a, 'b> {
    snapshot: Snapshot<'a>,
    preemptor: &'b Preemptor,
    victims: Vec<NamedVictim>,
}

pub fn search(
    snapshot: &Snapshot<'_>,
    preemptor: &Preemptor,
    strategies: &[FairStrategy],
) -> Vec<NamedVictim> {
    let mut lists = collect(snapshot, preemptor);
    let mut search = Search {
        snapshot: snapshot.clone(),
        preemptor,
        victims: Vec::new(),
    };
    search.add_request();
    let tree = &search.snapshot.tree;
    let own = preemptor.queue;
    let mut needs = preemptor.needs.iter();
    let nominal_first = needs.all(|it| tree.usage(own, *it) <= tree.nominal(own, *it));
    let first = strategies.first().copied();
    let first = first.unwrap_or(FairStrategy::LessThanOrEqualToFinalShare);
    let mut retry = Lists::new();
    let mut found = search.first_pass(&mut lists, nominal_first, first, &mut retry);
    if !found && strategies.get(1) == Some(&FairStrategy::LessThanInitialShare) {
        found = search.second_pass(&mut retry);
    }
    if !found {
        return Vec::new();
    }
    search.remove_request();
    fill_back(&mut search.snapshot, preemptor, true, &mut search.victims);
    search.victims
}

fn collect(snapshot: &Snapshot<'_>, preemptor: &Preemptor) -> Lists {
    let tree = &snapshot.tree;
    let root = tree.root(preemptor.queue);
    let mut all: Vec<_> = snapshot.admitted().collect();
    all.sort_by_key(|(workload, held)| candidate_order(workload, held));
    let mut lists = Lists::new();
    for (workload, held) in all {
        let queue = tree.index(&workload.queue, true);
        let is_own = queue == preemptor.queue;
        let uses = preemptor.needs.iter().any(|it| held.usage.contains_key(it));
        let mut needs = preemptor.needs.iter();
        let borrows = needs.any(|it| tree.usage(queue, *it) > tree.nominal(queue, *it));
        let is_near =
            is_own || (tree.root(queue) == root && borrows && !tree.nodes[queue].is_inactive);
        if uses && is_near && preemptor.may_preempt(workload, is_own) {
            let list = lists.entry(queue).or_default();
            list.push_back(workload.name.clone());
        }
    }
    lists
}

impl Search<'_, '_> {
    fn add_request(&mut self) {
        for (pair, amount) in &self.preemptor.request {
            self.snapshot.tree.add(self.preemptor.queue, *pair, *amount);
        }
    }

    fn remove_request(&mut self) {
        for (pair, amount) in &self.preemptor.request {
            let queue = self.preemptor.queue;
            self.snapshot.tree.remove(queue, *pair, *amount);
        }
    }

    /// Removes a workload; true if the preemptor fits then.
    fn take_victim(&mut self, workload: &str, reason: PreemptionReason) -> bool {
        self.snapshot.remove(workload);
        self.victims.push((workload.to_owned(), reason));
        self.remove_request();
        let fits = self.preemptor.fits(&self.snapshot.tree, true);
        self.add_request();
        fits
    }

    fn first_pass(
        &mut self,
        lists: &mut Lists,
        nominal_first: bool,
        strategy: FairStrategy,
        retry: &mut Lists,
    ) -> bool {
        while let Some(queue) = self.tournament(lists) {
            let list = lists.get_mut(&queue).unwrap();
            if queue == self.preemptor.queue || nominal_first {
                let reason = if queue == self.preemptor.queue {
                    PreemptionReason::InClusterQueue
                } else {
                    PreemptionReason::InCohortReclamation
                };
                let workload = list.pop_front().unwrap();
                if self.take_victim(&workload, reason) {
                    return true;
                }
                continue;
            }
            let (ours, theirs) = self.below_common(queue);
            let new = DominantShare::for_node(&self.snapshot.tree, ours);
            let old = DominantShare::for_node(&self.snapshot.tree, theirs);
            while let Some(workload) = list.pop_front() {
                let mut without = self.snapshot.clone();
                without.remove(&workload);
                let end = DominantShare::for_node(&without.tree, theirs);
                let passes = match strategy {
                    FairStrategy::LessThanOrEqualToFinalShare => new.cmp(&end).is_le(),
                    FairStrategy::LessThanInitialShare => new.cmp(&old).is_lt(),
                };
                if !passes {
                    retry.entry(queue).or_default().push_back(workload);
                } else if self.take_victim(&workload, PreemptionReason::InCohortFairSharing) {
                    return true;
                } else {
                    break;
                }
            }
        }
        false
    }

    fn second_pass(&mut self, retry: &mut Lists) -> bool {
        while let Some(queue) = self.tournament(retry) {
            let (ours, theirs) = self.below_common(queue);
            let new = DominantShare::for_node(&self.snapshot.tree, ours);
            let old = DominantShare::for_node(&self.snapshot.tree, theirs);
            let workload = retry.remove(&queue).unwrap().pop_front().unwrap();
            if new.cmp(&old).is_lt()
                && self.take_victim(&workload, PreemptionReason::InCohortFairSharing)
            {
                return true;
            }
        }
        false
    }

    /// The queue of the next victim.
    fn tournament(&self, lists: &Lists) -> Option<usize> {
        let tree = &self.snapshot.tree;
        let own = self.preemptor.queue;
        let has_any = |queue: usize| lists.get(&queue).is_some_and(|it| !it.is_empty());
        let root = tree.root(own);
        if root == own {
            return has_any(own).then_some(own);
        }
        let path = tree.path(own);
        let mut dead = BTreeSet::new();
        let mut at = root;
        loop {
            let mut queues: Vec<(usize, DominantShare)> = Vec::new();
            let mut cohorts: Vec<(usize, DominantShare)> = Vec::new();
            for child in &tree.nodes[at].children {
                let share = DominantShare::for_node(tree, *child);
                if tree.nodes[*child].is_queue {
                    if has_any(*child) && (*child == own || share.is_borrowing) {
                        queues.push((*child, share));
                    }
                } else if !dead.contains(child) && (path.contains(child) || share.is_borrowing) {
                    cohorts.push((*child, share));
                }
            }
            // The greatest share; for equal shares, queues by their first candidate, cohorts by name.
            queues.sort_by(|a, b| {
                let by_candidate = || self.front_key(lists, a.0).cmp(&self.front_key(lists, b.0));
                b.1.cmp(&a.1).then_with(by_candidate)
            });
            let name = |it: usize| &tree.nodes[it].name;
            cohorts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| name(a.0).cmp(name(b.0))));
            match (queues.first(), cohorts.first()) {
                (None, None) if at == root => return None,
                (None, None) => {
                    dead.insert(at);
                    at = root;
                }
                (None, Some((cohort, _))) => at = *cohort,
                (Some((queue, _)), None) => return Some(*queue),
                (Some((queue, queue_share)), Some((cohort, share))) => {
                    if share.cmp(queue_share).is_lt() {
                        return Some(*queue);
                    }
                    at = *cohort;
                }
            }
        }
    }

    /// The order of the first candidates of several queues: evicted first, then those of other queues, then the general
    /// candidate order.
    fn front_key(&self, lists: &Lists, queue: usize) -> impl Ord + use<> {
        let workload = &self.snapshot.cluster_model.workloads[&lists[&queue][0]];
        let held = workload.reservation.as_ref().unwrap();
        let (not_evicted, priority, newest, uid) = candidate_order(workload, held);
        let is_own = queue == self.preemptor.queue;
        (not_evicted, is_own, priority, newest, uid.to_owned())
    }

    /// The children of the lowest common cohort of both queues, on the path to each.
    fn below_common(&self, other: usize) -> (usize, usize) {
        let tree = &self.snapshot.tree;
        let ours = [vec![self.preemptor.queue], tree.path(self.preemptor.queue)].concat();
        let theirs = [vec![other], tree.path(other)].concat();
        let common = ours.iter().find(|it| theirs.contains(it)).unwrap();
        let before = |way: &[usize]| way[way.iter().position(|it| it == common).unwrap() - 1];
        (before(&ours), before(&theirs))
    }
}
