//! `elastic` of a ClusterQueue: its quota as job-level preemption sees it ([`crate::job`]).
//!
//! Nominal quota is min, nominal quota and borrowing limit together are max; without a cohort nothing is borrowed,
//! and max is min. The gates of the proposal are asked besides the cohort's `available`: what holds a workload
//! back there is not preempted for. The rest is as in other queues, but that a non-preemptible workload is
//! never a victim, and that only a workload that may trigger preemption is a preemptor.
//!
//! What the proposal does not know: several flavors. What non-preemptible workloads ask for that wait is counted
//! against the min of the flavors in their order, as far as non-preemptible use leaves some.

use crate::amount::Amount;
use crate::assignment::PodSet;
use crate::job::{Class, Switches};
use crate::names::{FlavorResource, NodeId, ResourceId, WorkloadId};
use crate::queue::Settings;
use crate::quota::{Tree, Usage};
use crate::records::Record;
use crate::state::State;
use crate::trace::FlavorVerdict;
use std::collections::BTreeMap;

/// What non-preemptible workloads of an elastic queue use and ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fixed {
    used: BTreeMap<FlavorResource, Amount>,
    /// Of those that wait.
    pending: BTreeMap<ResourceId, Amount>,
}

impl Fixed {
    /// Nobody is non-preemptible.
    pub(crate) const NOTHING: Self = Self {
        used: BTreeMap::new(),
        pending: BTreeMap::new(),
    };

    fn used(&self, of: FlavorResource) -> Amount {
        self.used.get(&of).copied().unwrap_or_default()
    }
}

fn change<K: Ord>(sums: &mut BTreeMap<K, Amount>, key: K, change: impl FnOnce(Amount) -> Amount) {
    let sum = sums.entry(key).or_default();
    *sum = change(*sum);
}

/// What the gates of an elastic queue read.
#[derive(Clone, Copy)]
pub(crate) struct Gate<'a> {
    /// The class of who asks.
    pub(crate) class: Class,
    pub(crate) queue: NodeId,
    pub(crate) settings: &'a Settings,
    pub(crate) fixed: &'a Fixed,
    pub(crate) tree: &'a Tree,
    /// What is used, without what is only tried out.
    pub(crate) usage: &'a Vec<Amount>,
}

impl Gate<'_> {
    /// Why a workload gets nothing of a flavor and resource, if it asks for so much in all: R1 of a
    /// non-preemptible one, R2 of a preemptible one. That a non-preemptible one stays within max is for
    /// `available` to say, since preemption may mend it (R6).
    pub(crate) fn refuses(&self, of: FlavorResource, asked: Amount) -> Option<FlavorVerdict> {
        match self.class {
            Class::NonPreemptible => {
                let sum = self.fixed.used(of).plus(asked);
                let min = self.min(of);
                (sum > min).then_some(FlavorVerdict::BeyondMin { of, sum, min })
            }
            Class::Preemptible => {
                let kept = self.kept(of);
                let cell = self.tree.node(self.queue).cell(of);
                let used = cell.map_or(Amount::ZERO, |it| self.usage.usage(it));
                let preemptible = used.minus(self.fixed.used(of)).or_zero();
                let sum = kept.plus(preemptible).plus(asked);
                let max = self.max(of);
                (sum > max).then_some(FlavorVerdict::BeyondMax { of, sum, kept, max })
            }
        }
    }

    fn min(&self, of: FlavorResource) -> Amount {
        let cell = self.tree.node(self.queue).cell(of);
        cell.map_or(Amount::ZERO, |it| self.tree.cell(it).nominal)
    }

    fn max(&self, of: FlavorResource) -> Amount {
        let node = self.tree.node(self.queue);
        let Some(cell) = node.cell(of).map(|it| self.tree.cell(it)) else {
            return Amount::ZERO;
        };
        if node.parent.is_none() {
            return cell.nominal;
        }
        cell.ceiling.plus(cell.local)
    }

    /// The lesser of min and what the non-preemptible ask for.
    fn kept(&self, of: FlavorResource) -> Amount {
        let used = self.fixed.used(of);
        used.plus(self.waits_for(of)).min(self.min(of))
    }

    /// What of the waiting falls to this flavor.
    fn waits_for(&self, of: FlavorResource) -> Amount {
        let resource = of.resource;
        let pending = self.fixed.pending.get(&resource);
        let mut rest = pending.copied().unwrap_or_default();
        let mut groups = self.settings.groups.iter();
        let group = groups.find(|it| it.resources.contains(&resource));
        for flavor in group.into_iter().flat_map(|it| &it.flavors) {
            let flavor = flavor.flavor;
            let it = FlavorResource { flavor, resource };
            let part = rest.min(self.min(it).minus(self.fixed.used(it)).or_zero());
            if it == of {
                return part;
            }
            rest = rest.minus(part);
        }
        Amount::ZERO
    }
}

impl Settings {
    /// Whether workloads that say this are never victims here.
    pub(crate) fn keeps(&self, says: crate::job::Says) -> bool {
        let class = self.elastic.map(|it| it.class(says));
        class == Some(Class::NonPreemptible)
    }

    /// Whether workloads that say this may preempt.
    pub(crate) fn lets_preempt(&self, says: crate::job::Says) -> bool {
        self.elastic.is_none_or(|it| it.may_trigger(says))
    }
}

impl State {
    /// Counts what a workload uses or asks for among the non-preemptible of its queue. Says in which queue, if
    /// it is one of them.
    pub(crate) fn tally(&mut self, id: WorkloadId) -> Option<NodeId> {
        self.change_tally(id, Amount::plus)
    }

    /// Takes back what [`Self::tally`] did. What it uses must not have changed since.
    pub(crate) fn untally(&mut self, id: WorkloadId) -> Option<NodeId> {
        self.change_tally(id, Amount::minus)
    }

    fn change_tally(
        &mut self,
        id: WorkloadId,
        by: impl Fn(Amount, Amount) -> Amount,
    ) -> Option<NodeId> {
        if !self.has_elastic {
            return None;
        }
        let record = self.records.get(id)?;
        let queue = self.queues.get_mut(record.queue.index())?;
        if !queue.settings.keeps(record.says) || !record.is_in_scope && record.running.is_none() {
            return None;
        }
        let fixed = queue.fixed.get_or_insert_default();
        if let Some(running) = &record.running {
            let group = self.index.group(running.queue, running.group);
            for (of, amount) in group.of.iter().zip(running.amounts.as_slice()) {
                change(&mut fixed.used, *of, |sum| by(sum, *amount));
            }
        } else {
            for (resource, amount) in asked(record) {
                change(&mut fixed.pending, resource, |sum| by(sum, amount));
            }
        }
        Some(record.queue)
    }

    /// Counts all workloads of a queue anew, since its switches have changed. Costs all workloads.
    pub(crate) fn recount(&mut self, queue: NodeId, elastic: Option<Switches>) {
        self.has_elastic |= elastic.is_some();
        if let Some(queue) = self.queues.get_mut(queue.index()) {
            queue.fixed = None;
        }
        let of_queue = self.records.iter().filter(|(_, it)| it.queue == queue);
        let ids: Vec<WorkloadId> = of_queue.map(|(id, _)| id).collect();
        for id in ids {
            self.tally(id);
        }
    }
}

/// What all pods of a workload ask for. That they are pods counts where it is not said how many.
fn asked(record: &Record) -> impl Iterator<Item = (ResourceId, Amount)> {
    let is_counted = |pod_set: &PodSet| {
        let mut requests = pod_set.requests.iter();
        requests.any(|(it, _)| *it == ResourceId::PODS)
    };
    record.pod_sets.iter().flat_map(move |pod_set| {
        let pods = (ResourceId::PODS, Amount::new(pod_set.count));
        let pods = (!is_counted(pod_set)).then_some(pods);
        pod_set.requests.iter().copied().chain(pods)
    })
}
