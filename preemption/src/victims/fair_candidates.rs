//! The candidates of fair sharing by queue.

use super::candidate_scope::CandidateScope;
use super::merge::Merge;
use super::preemptor::Preemptor;
use super::search_context::SearchContext;
use crate::admitted::UsageGroup;
use crate::candidate_list::{CandidateKey, CandidateList};
use crate::ids::NodeId;
use crate::quota::{UsageStore, View};
use crate::trace::{Step, Trace};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The candidates of one queue, read from the front.
pub(super) struct QueueCandidates<'a> {
    scope: CandidateScope,
    evicted: Merge<'a>,
    others: Merge<'a>,
    pub(super) next: Option<NextCandidate>,
}

/// The next candidate of a queue.
#[derive(Clone, Copy)]
pub(super) struct NextCandidate {
    pub(super) key: CandidateKey,
    is_evicted: bool,
}

impl QueueCandidates<'_> {
    fn advance(
        &mut self,
        context: &SearchContext<'_>,
        preemptor: &Preemptor<'_>,
        trace: &mut Trace,
    ) {
        for is_evicted in [true, false] {
            let merge = if is_evicted {
                &mut self.evicted
            } else {
                &mut self.others
            };
            while let Some(next) = merge.next() {
                let rank = next.key;
                if self.scope.ends_at(rank.priority) {
                    continue;
                }
                merge.advance_past(&next);
                let running = context.admitted.admitted(rank.id);
                let Some(running) = running.filter(|it| self.scope.includes(it)) else {
                    continue;
                };
                if context.removed.contains(&rank.id) {
                    continue;
                }
                if let Some(why) = context.protection(preemptor, rank.id, running) {
                    let workload = rank.id;
                    trace.record(|| Step::Protected {
                        workload,
                        protection: why,
                    });
                    continue;
                }
                self.next = Some(NextCandidate {
                    key: rank,
                    is_evicted,
                });
                return;
            }
        }
        self.next = None;
    }

    pub(super) fn pop(
        &mut self,
        context: &SearchContext<'_>,
        preemptor: &Preemptor<'_>,
        trace: &mut Trace,
    ) -> Option<NextCandidate> {
        let front = self.next;
        self.advance(context, preemptor, trace);
        front
    }
}

/// Collects the candidates of the preemptor's queue and of every queue that borrows.
pub(super) fn collect<'a>(
    view: &View<'_>,
    context: &SearchContext<'a>,
    preemptor: &Preemptor<'_>,
    trace: &mut Trace,
) -> BTreeMap<NodeId, QueueCandidates<'a>> {
    let mut found = BTreeMap::new();
    let mut add = |queue, scope| {
        let groups = context.index.groups(queue).iter();
        let groups: Vec<_> = groups
            .filter(|group| !group.is_empty() && group.uses_any(preemptor.needs))
            .collect();
        let merge = |of: fn(&UsageGroup) -> &CandidateList| {
            let lists = groups.iter().map(|group| of(group)).enumerate();
            Merge::new(context.admitted, lists)
        };
        let mut candidates = QueueCandidates {
            scope,
            evicted: merge(|it| &it.evicted),
            others: merge(|it| &it.not_evicted),
            next: None,
        };
        candidates.advance(context, preemptor, trace);
        if candidates.next.is_some() {
            found.insert(queue, candidates);
        }
    };
    add(preemptor.queue, CandidateScope::for_own_queue(preemptor));
    let scope = CandidateScope::for_other_queues(preemptor);
    if scope == CandidateScope::Empty {
        return found;
    }
    let mut open = vec![view.tree.node(preemptor.queue).root];
    while let Some(id) = open.pop() {
        let node = view.tree.node(id);
        open.extend(&node.children);
        let mut needed = preemptor.needs.iter().filter_map(|of| node.cell(*of));
        let mut borrows = || needed.any(|cell| view.usage(cell) > view.tree.cell(cell).nominal);
        if node.is_queue && !node.is_inactive && id != preemptor.queue && borrows() {
            add(id, scope);
        }
    }
    found
}

/// Compares the next candidates of two queues: evicted ones first, then those of other queues than the preemptor's,
/// then by candidate order.
pub(super) fn cmp_across(
    context: &SearchContext<'_>,
    preemptor: &Preemptor<'_>,
    a: (NodeId, NextCandidate),
    b: (NodeId, NextCandidate),
) -> Ordering {
    let key =
        |(queue, front): (NodeId, NextCandidate)| (!front.is_evicted, queue == preemptor.queue);
    key(a)
        .cmp(&key(b))
        .then_with(|| a.1.key.cmp(&b.1.key, context.admitted))
}
