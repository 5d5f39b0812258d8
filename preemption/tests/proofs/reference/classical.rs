//! Victims by priority and borrowing: all candidates are sorted, removed in order, and reprieved where possible.

use super::{Preemptor, Snapshot, candidate_order, fill_back};
use crate::model::cluster_model::{ModelReservation, Pair, Workload};
use crate::model::named_decisions::NamedVictim;
use lockkeeper_preemption::{BorrowWithinCohort, PreemptionReason};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Own,
    Hierarchy,
    WithoutBorrowing,
    WhileBorrowing,
}

#[derive(Clone)]
struct Candidate<'a> {
    workload: &'a Workload,
    held: &'a ModelReservation,
    variant: Variant,
    queue: usize,
    /// The lowest common ancestor, for candidates of other queues.
    ancestor: Option<usize>,
}

pub fn search(snapshot: &Snapshot<'_>, preemptor: &Preemptor) -> Vec<NamedVictim> {
    let (hierarchy, priority, own) = collect(snapshot, preemptor);
    let mut candidates = Vec::new();
    for is_evicted in [true, false] {
        for list in [&hierarchy, &priority, &own] {
            let part = list.iter().filter(|it| it.held.is_evicted == is_evicted);
            candidates.extend(part.cloned());
        }
    }
    let never = preemptor.policy.borrow_within_cohort == BorrowWithinCohort::Never;
    let tree = &snapshot.tree;
    let under = preemptor
        .needs
        .iter()
        .all(|pair| tree.usage(preemptor.queue, *pair) < tree.nominal(preemptor.queue, *pair));
    let never_preempts_others = hierarchy.is_empty() && priority.is_empty();
    let attempts: &[bool] = if never_preempts_others || (never && !under) {
        &[true]
    } else if never && hierarchy.is_empty() {
        &[false, true]
    } else {
        &[true, false]
    };
    let mut found = attempts
        .iter()
        .filter_map(|may_borrow| attempt(snapshot, preemptor, &candidates, *may_borrow));
    found.next().unwrap_or_default()
}

fn is_within(snapshot: &Snapshot<'_>, preemptor: &Preemptor, node: usize) -> bool {
    let mut needs = preemptor.needs.iter();
    needs.all(|pair| snapshot.tree.is_within_quota(node, *pair))
}

/// The lists: hierarchical advantage, by priority, of its own queue.
fn collect<'a>(
    snapshot: &Snapshot<'a>,
    preemptor: &Preemptor,
) -> (Vec<Candidate<'a>>, Vec<Candidate<'a>>, Vec<Candidate<'a>>) {
    let tree = &snapshot.tree;
    let own = queue_candidates(snapshot, preemptor, preemptor.queue, None, Variant::Own);
    let (mut hierarchy, mut priority) = (Vec::new(), Vec::new());
    let (mut advantage, mut rest) = fit(snapshot, preemptor.queue, &preemptor.request);
    let mut walked = preemptor.queue;
    for ancestor in tree.path(preemptor.queue) {
        let mut open: Vec<usize> = tree.nodes[ancestor].children.clone();
        open.retain(|it| *it != walked);
        while let Some(node) = open.pop() {
            if tree.nodes[node].is_inactive || is_within(snapshot, preemptor, node) {
                continue;
            }
            if !tree.nodes[node].is_queue {
                open.extend(&tree.nodes[node].children);
            } else if advantage {
                let variant = Variant::Hierarchy;
                hierarchy.extend(queue_candidates(
                    snapshot,
                    preemptor,
                    node,
                    Some(ancestor),
                    variant,
                ));
            } else {
                let variant = Variant::WithoutBorrowing;
                let mut found =
                    queue_candidates(snapshot, preemptor, node, Some(ancestor), variant);
                for candidate in &mut found {
                    candidate.variant = by_priority(preemptor, candidate.workload);
                }
                priority.extend(found);
            }
        }
        let (fits, left) = fit(snapshot, ancestor, &rest);
        advantage |= fits;
        rest = left;
        walked = ancestor;
    }
    let sorted = |mut list: Vec<Candidate<'a>>| {
        list.sort_by_key(|it| candidate_order(it.workload, it.held));
        list
    };
    (sorted(hierarchy), sorted(priority), sorted(own))
}

fn queue_candidates<'a>(
    snapshot: &Snapshot<'a>,
    preemptor: &Preemptor,
    queue: usize,
    ancestor: Option<usize>,
    variant: Variant,
) -> Vec<Candidate<'a>> {
    let tree = &snapshot.tree;
    snapshot
        .admitted()
        .filter(|(it, _)| tree.index(&it.queue, true) == queue)
        .filter(|(_, held)| preemptor.needs.iter().any(|it| held.usage.contains_key(it)))
        .filter(|(it, _)| preemptor.may_preempt(it, queue == preemptor.queue))
        .map(|(workload, held)| Candidate {
            workload,
            held,
            variant,
            queue,
            ancestor,
        })
        .collect()
}

fn by_priority(preemptor: &Preemptor, workload: &Workload) -> Variant {
    let BorrowWithinCohort::LowerPriority { threshold_max } = preemptor.policy.borrow_within_cohort
    else {
        return Variant::WithoutBorrowing;
    };
    let priority = workload.candidate_priority();
    if priority >= preemptor.priority || threshold_max.is_some_and(|most| priority > most) {
        Variant::WithoutBorrowing
    } else {
        Variant::WhileBorrowing
    }
}

/// Whether the node has quota for the amount, and the rest that its parent must provide.
fn fit(
    snapshot: &Snapshot<'_>,
    node: usize,
    request: &BTreeMap<Pair, i64>,
) -> (bool, BTreeMap<Pair, i64>) {
    let tree = &snapshot.tree;
    let mut fits = true;
    let mut rest = BTreeMap::new();
    for (pair, amount) in request {
        fits &= tree.usage(node, *pair) + amount <= tree.subtree(node, *pair);
        rest.insert(*pair, (amount - tree.local_available(node, *pair)).max(0));
    }
    (fits, rest)
}

fn attempt(
    snapshot: &Snapshot<'_>,
    preemptor: &Preemptor,
    candidates: &[Candidate<'_>],
    may_borrow: bool,
) -> Option<Vec<NamedVictim>> {
    let mut snapshot = snapshot.clone();
    let mut victims = Vec::new();
    for candidate in candidates {
        if is_skipped(&snapshot, preemptor, candidate, may_borrow) {
            continue;
        }
        snapshot.remove(&candidate.workload.name);
        let reason = match candidate.variant {
            Variant::Own => PreemptionReason::InClusterQueue,
            Variant::Hierarchy | Variant::WithoutBorrowing => PreemptionReason::InCohortReclamation,
            Variant::WhileBorrowing => PreemptionReason::InCohortReclaimWhileBorrowing,
        };
        victims.push((candidate.workload.name.clone(), reason));
        if preemptor.fits(&snapshot.tree, may_borrow) {
            fill_back(&mut snapshot, preemptor, may_borrow, &mut victims);
            return Some(victims);
        }
    }
    None
}

fn is_skipped(
    snapshot: &Snapshot<'_>,
    preemptor: &Preemptor,
    candidate: &Candidate<'_>,
    may_borrow: bool,
) -> bool {
    let Some(ancestor) = candidate.ancestor else {
        return false;
    };
    if may_borrow && candidate.variant == Variant::WithoutBorrowing {
        return true;
    }
    let path = snapshot.tree.path(candidate.queue);
    let mut between = path.into_iter().take_while(|it| *it != ancestor);
    is_within(snapshot, preemptor, candidate.queue)
        || between.any(|it| is_within(snapshot, preemptor, it))
}
