//! Quota that is held for preemptors.

use super::history::Histories;
use crate::admitted::{AdmittedIndex, AdmittedLookup};
use crate::amount::Amount;
use crate::assignment::Assignment;
use crate::ids::{CellId, FlavorResource, NodeId, WorkloadId};
use crate::quota::View;
use crate::victim::Victim;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The quota that is held for one preemptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) queue: NodeId,
    pub(crate) priority: i32,
    /// The assignment that the preemptor was nominated for.
    pub(crate) assignment: Arc<Assignment>,
    pub(crate) victims: Vec<Victim>,
}

/// All holds, by preemptor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    by_preemptor: BTreeMap<WorkloadId, Hold>,
    /// The queues of holds that have ended since the last [`Self::take_ended`].
    ended_queues: Vec<NodeId>,
}

impl Holds {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_preemptor.is_empty()
    }

    pub(crate) fn contains(&self, preemptor: WorkloadId) -> bool {
        self.by_preemptor.contains_key(&preemptor)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (WorkloadId, &Hold)> {
        self.by_preemptor.iter().map(|(id, hold)| (*id, hold))
    }

    pub(crate) fn get(&self, preemptor: WorkloadId) -> Option<&Hold> {
        self.by_preemptor.get(&preemptor)
    }

    pub(crate) fn begin(&mut self, preemptor: WorkloadId, hold: Hold) {
        self.by_preemptor.insert(preemptor, hold);
    }

    pub(crate) fn end(&mut self, preemptor: WorkloadId) {
        if let Some(hold) = self.by_preemptor.remove(&preemptor) {
            self.ended_queues.push(hold.queue);
        }
    }

    pub(crate) fn end_where(&mut self, mut is_over: impl FnMut(&Hold) -> bool) {
        self.by_preemptor.retain(|_, hold| {
            let is_over = is_over(hold);
            if is_over {
                self.ended_queues.push(hold.queue);
            }
            !is_over
        });
    }

    /// Returns the queues of holds that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<NodeId> {
        std::mem::take(&mut self.ended_queues)
    }
}

impl Hold {
    /// Returns the victims that have not released their quota yet.
    pub(crate) fn remaining_victims(
        &self,
        preemptor: WorkloadId,
        histories: &Histories,
    ) -> impl Iterator<Item = &Victim> {
        let is_being_evicted =
            move |it: &&Victim| histories.evicting_preemptor(it.workload) == Some(preemptor);
        self.victims.iter().filter(is_being_evicted)
    }

    /// Returns the held amounts: the usage of the assignment, less the part that its victims still use.
    pub(crate) fn amounts(
        &self,
        preemptor: WorkloadId,
        histories: &Histories,
        index: &AdmittedIndex,
        workloads: &dyn AdmittedLookup,
    ) -> Vec<(FlavorResource, Amount)> {
        let mut amounts = self.assignment.usage.clone();
        let leaving = self.remaining_victims(preemptor, histories);
        for running in leaving.filter_map(|it| workloads.admitted(it.workload)) {
            let group = index.group(running.queue, running.usage_group);
            for (of, amount) in group
                .flavor_resources
                .iter()
                .zip(running.amounts.as_slice())
            {
                for (_, held) in amounts.iter_mut().filter(|(it, _)| it == of) {
                    // The tree already counts this amount as used by the victim.
                    *held = held.minus(*amount);
                }
            }
        }
        amounts.retain(|(_, amount)| *amount > Amount::ZERO);
        amounts
    }

    /// Maps the amounts of [`Self::amounts`] to the cells of the preemptor's queue.
    pub(crate) fn cell_amounts(
        &self,
        view: &View<'_>,
        amounts: &[(FlavorResource, Amount)],
    ) -> Vec<(CellId, Amount)> {
        let node = view.tree.node(self.queue);
        let cell = |(of, amount): &(FlavorResource, Amount)| Some((node.cell(*of)?, *amount));
        amounts.iter().filter_map(cell).collect()
    }
}
