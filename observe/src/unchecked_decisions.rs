//! The decisions of Kueue that are not compared yet.

use crate::decision::{KueueDecision, What, admission_of};
use crate::workload_facts::{preempted, true_condition};
use lockkeeper_api::Workload;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A change of a workload that is a decision.
pub(crate) struct DecidedChange<'a> {
    /// When it was delivered, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// Its position among all changes.
    pub(crate) seq: u64,
    pub(crate) key: &'a Arc<str>,
    pub(crate) version: &'a Workload,
}

/// The decisions, in the order of their first changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct UncheckedDecisions {
    decisions: Vec<KueueDecision>,
}

impl UncheckedDecisions {
    /// The number of decisions.
    pub(crate) const fn len(&self) -> usize {
        self.decisions.len()
    }

    /// When the last change of the first decision was delivered, in milliseconds since 1970.
    pub(crate) fn oldest_ms(&self) -> Option<i64> {
        self.decisions.iter().map(|it| it.at_ms).min()
    }

    /// The position of the first decision of which all changes are known by now, those of its siblings included.
    pub(crate) fn settled(&self, now_ms: i64, settle_ms: i64) -> Option<usize> {
        let is_settled = |it: &KueueDecision| it.at_ms.saturating_add(settle_ms) <= now_ms;
        self.decisions.iter().position(|it| {
            let mut siblings = self.decisions.iter().filter(|other| it.is_sibling(other));
            is_settled(it) && siblings.all(is_settled)
        })
    }

    /// Removes the first settled decision.
    pub(crate) fn take_settled(&mut self, now_ms: i64, settle_ms: i64) -> Option<KueueDecision> {
        let position = self.settled(now_ms, settle_ms)?;
        Some(self.decisions.remove(position))
    }

    /// The siblings of a decision.
    pub(crate) fn siblings(&self, of: &KueueDecision) -> impl Iterator<Item = &KueueDecision> {
        self.decisions.iter().filter(|it| it.is_sibling(of))
    }

    /// Confirms a sibling of a decision: both agree as one preemption.
    pub(crate) fn confirm(&mut self, first_seq: u64) {
        for it in &mut self.decisions {
            it.is_confirmed |= it.first_seq == first_seq;
        }
    }

    /// Gives a compared decision to its siblings.
    pub(crate) fn add_sibling(&mut self, compared: &KueueDecision) {
        let siblings = self.decisions.iter_mut();
        for sibling in siblings.filter(|it| it.is_sibling(compared)) {
            let siblings = Vec::new();
            sibling.siblings.push(KueueDecision {
                siblings,
                ..compared.clone()
            });
        }
    }

    /// Adds an admission.
    pub(crate) fn add_admission(
        &mut self,
        change: &DecidedChange<'_>,
        queue: &Arc<str>,
        decided_s: i64,
    ) {
        let DecidedChange { seq, key, .. } = *change;
        let Some(admission) = admission_of(change.version) else {
            return;
        };
        // What Kueue preempts from now on is another decision.
        for it in &mut self.decisions {
            it.is_closed |= it.key == *key || it.has_victim(key);
        }
        let reserved = true_condition(change.version, "QuotaReserved");
        self.decisions.push(KueueDecision {
            key: Arc::clone(key),
            queue: Arc::clone(queue),
            what: What::Admission(admission),
            decided_s,
            first_seq: seq,
            seqs: BTreeMap::from([(seq, (Arc::clone(key), decided_s))]),
            preceding: BTreeSet::new(),
            siblings: Vec::new(),
            is_confirmed: false,
            at_ms: change.at_ms,
            is_closed: true,
            message: reserved.map(|it| it.message.clone()).unwrap_or_default(),
        });
    }

    /// Adds the preemption of a victim, to the decision of the same second on the preemptor if there is one.
    pub(crate) fn add_preemption(
        &mut self,
        change: &DecidedChange<'_>,
        preemptor: &Arc<str>,
        queue: &Arc<str>,
        decided_s: i64,
    ) {
        let DecidedChange { seq, key, .. } = *change;
        let Some(condition) = preempted(change.version) else {
            return;
        };
        let is_same = |it: &&mut KueueDecision| {
            it.may_have_victim(key) && it.key == *preemptor && it.decided_s == decided_s
        };
        if let Some(known) = self.decisions.iter_mut().find(is_same) {
            known.add_victim(key, change.version, decided_s, seq);
            known.at_ms = change.at_ms;
            return;
        }
        let mut decision = KueueDecision {
            key: Arc::clone(preemptor),
            queue: Arc::clone(queue),
            what: What::Preemption(BTreeMap::new()),
            decided_s,
            first_seq: seq,
            seqs: BTreeMap::new(),
            preceding: BTreeSet::new(),
            siblings: Vec::new(),
            is_confirmed: false,
            at_ms: change.at_ms,
            is_closed: false,
            message: condition.message.clone(),
        };
        decision.add_victim(key, change.version, decided_s, seq);
        self.decisions.push(decision);
    }
}
