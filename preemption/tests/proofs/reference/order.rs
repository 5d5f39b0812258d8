//! The order in which the entries of a cycle are decided.

use super::Snapshot;
use super::fair::DominantShare;
use crate::model::cluster_model::Workload;
use crate::model::named_decisions::NamedNomination;
use lockkeeper_preemption::Algorithm;
use std::cmp::{Ordering, Reverse};

/// A head and its nomination.
#[derive(Clone)]
pub struct NominatedEntry<'a> {
    pub workload: &'a Workload,
    pub nominated: NamedNomination,
}

/// The index of the next entry. `waiting` is in the order of the queues' names.
pub fn next(snapshot: &Snapshot<'_>, waiting: &[NominatedEntry<'_>]) -> usize {
    if snapshot.cluster_model.options.algorithm == Algorithm::Classical {
        let key = |entry: &NominatedEntry<'_>| {
            let workload = entry.workload;
            let level = entry.nominated.plan.level;
            (level, Reverse(workload.priority), workload.order_time)
        };
        // The first of several equal entries.
        let all = waiting.iter().enumerate();
        return all.min_by_key(|(_, it)| key(it)).unwrap().0;
    }
    let root_of = |entry: &NominatedEntry<'_>| {
        let tree = &snapshot.tree;
        tree.root(tree.index(&entry.workload.queue, true))
    };
    let root = root_of(&waiting[0]);
    let mut best = None;
    let of_tree: Vec<usize> = (0..waiting.len())
        .filter(|at| root_of(&waiting[*at]) == root)
        .collect();
    best_below(snapshot, waiting, &of_tree, root, &mut best);
    best.unwrap()
}

/// The best of the entries below a node.
fn best_below(
    snapshot: &Snapshot<'_>,
    waiting: &[NominatedEntry<'_>],
    entries: &[usize],
    node: usize,
    best: &mut Option<usize>,
) {
    let tree = &snapshot.tree;
    *best = None;
    if tree.nodes[node].is_queue {
        let name = &tree.nodes[node].name;
        let mut own = entries.iter();
        *best = own
            .find(|at| waiting[**at].workload.queue == *name)
            .copied();
        return;
    }
    let mut leader: Option<(usize, usize)> = None;
    for child in &tree.nodes[node].children {
        let mut forwarded = None;
        best_below(snapshot, waiting, entries, *child, &mut forwarded);
        let Some(entry) = forwarded else {
            continue;
        };
        let challenger = (entry, *child);
        let wins = leader.is_none_or(|it| compare(snapshot, waiting, challenger, it).is_lt());
        if wins {
            leader = Some(challenger);
        }
    }
    *best = leader.map(|(entry, _)| entry);
}

/// Compares entries by the share of the cohort's child on their path, with their request added.
fn compare(
    snapshot: &Snapshot<'_>,
    waiting: &[NominatedEntry<'_>],
    a: (usize, usize),
    b: (usize, usize),
) -> Ordering {
    let standing = |(entry, child): (usize, usize)| {
        let mut tree = snapshot.tree.clone();
        let nominee = &waiting[entry];
        let queue = tree.index(&nominee.workload.queue, true);
        let usage = &nominee.nominated.plan.usage;
        for (pair, amount) in usage {
            tree.add(queue, *pair, *amount);
        }
        let mut requested = usage.iter().filter(|(_, amount)| **amount > 0);
        let is_over = requested.any(|(pair, _)| !tree.is_within_quota(child, *pair));
        (is_over, DominantShare::for_node(&tree, child))
    };
    let key = |(entry, _): (usize, usize)| {
        let workload = waiting[entry].workload;
        let priority = Reverse(workload.priority);
        (priority, workload.order_time, workload.queue.clone())
    };
    let ((a_over, a_share), (b_over, b_share)) = (standing(a), standing(b));
    a_over
        .cmp(&b_over)
        .then_with(|| a_share.cmp(&b_share))
        .then_with(|| key(a).cmp(&key(b)))
}
