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
use crate::ids::{FlavorResource, NodeId, ResourceId, WorkloadId};
use crate::job::{ElasticDefaults, Preemptibility};
use crate::queue::QueueSettings;
use crate::quota::{Tree, UsageStore};
use crate::state::State;
use crate::trace::FlavorVerdict;
use crate::workload_table::WorkloadRow;
use std::collections::BTreeMap;

/// What non-preemptible workloads of an elastic queue use and ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NonPreemptibleUsage {
    used: BTreeMap<FlavorResource, Amount>,
    /// Of those that wait.
    pending: BTreeMap<ResourceId, Amount>,
}

impl NonPreemptibleUsage {
    /// Nobody is non-preemptible.
    pub(crate) const EMPTY: Self = Self {
        used: BTreeMap::new(),
        pending: BTreeMap::new(),
    };

    fn used(&self, of: FlavorResource) -> Amount {
        self.used.get(&of).copied().unwrap_or_default()
    }
}

fn update_sum<K: Ord>(
    sums: &mut BTreeMap<K, Amount>,
    key: K,
    change: impl FnOnce(Amount) -> Amount,
) {
    let sum = sums.entry(key).or_default();
    *sum = change(*sum);
}

/// What the gates of an elastic queue read.
#[derive(Clone, Copy)]
pub(crate) struct ElasticGate<'a> {
    /// The class of who asks.
    pub(crate) preemptibility: Preemptibility,
    pub(crate) queue: NodeId,
    pub(crate) settings: &'a QueueSettings,
    pub(crate) non_preemptible: &'a NonPreemptibleUsage,
    pub(crate) tree: &'a Tree,
    /// What is used, without what is only tried out.
    pub(crate) usage: &'a Vec<Amount>,
}

impl ElasticGate<'_> {
    /// Why a workload gets nothing of a flavor and resource, if it asks for so much in all: R1 of a
    /// non-preemptible one, R2 of a preemptible one. That a non-preemptible one stays within max is for
    /// `available` to say, since preemption may mend it (R6).
    pub(crate) fn rejection(&self, of: FlavorResource, asked: Amount) -> Option<FlavorVerdict> {
        match self.preemptibility {
            Preemptibility::NonPreemptible => {
                let sum = self.non_preemptible.used(of).plus(asked);
                let min = self.min(of);
                (sum > min).then_some(FlavorVerdict::ExceedsMin { of, sum, min })
            }
            Preemptibility::Preemptible => {
                let kept = self.reserved_for_non_preemptible(of);
                let cell = self.tree.node(self.queue).cell(of);
                let used = cell.map_or(Amount::ZERO, |it| self.usage.usage(it));
                let preemptible = used.minus(self.non_preemptible.used(of)).or_zero();
                let sum = kept.plus(preemptible).plus(asked);
                let max = self.max(of);
                (sum > max).then_some(FlavorVerdict::ExceedsMax {
                    of,
                    sum,
                    reserved: kept,
                    max,
                })
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
    fn reserved_for_non_preemptible(&self, of: FlavorResource) -> Amount {
        let used = self.non_preemptible.used(of);
        used.plus(self.pending_share(of)).min(self.min(of))
    }

    /// What of the waiting falls to this flavor.
    fn pending_share(&self, of: FlavorResource) -> Amount {
        let resource = of.resource;
        let pending = self.non_preemptible.pending.get(&resource);
        let mut rest = pending.copied().unwrap_or_default();
        let mut groups = self.settings.groups.iter();
        let group = groups.find(|it| it.resources.contains(&resource));
        for flavor in group.into_iter().flat_map(|it| &it.flavors) {
            let flavor = flavor.flavor;
            let it = FlavorResource { flavor, resource };
            let part = rest.min(self.min(it).minus(self.non_preemptible.used(it)).or_zero());
            if it == of {
                return part;
            }
            rest = rest.minus(part);
        }
        Amount::ZERO
    }
}

impl QueueSettings {
    /// Whether workloads that say this are never victims here.
    pub(crate) fn protects(&self, says: crate::job::PreemptionLabels) -> bool {
        let class = self.elastic.map(|it| it.preemptibility(says));
        class == Some(Preemptibility::NonPreemptible)
    }

    /// Whether workloads that say this may preempt.
    pub(crate) fn may_preempt(&self, says: crate::job::PreemptionLabels) -> bool {
        self.elastic
            .is_none_or(|it| it.may_trigger_preemption(says))
    }
}

impl State {
    /// Counts what a workload uses or asks for among the non-preemptible of its queue. Says in which queue, if
    /// it is one of them.
    pub(crate) fn add_non_preemptible_usage(&mut self, id: WorkloadId) -> Option<NodeId> {
        self.change_non_preemptible_usage(id, Amount::plus)
    }

    /// Takes back what [`Self::tally`] did. What it uses must not have changed since.
    pub(crate) fn remove_non_preemptible_usage(&mut self, id: WorkloadId) -> Option<NodeId> {
        self.change_non_preemptible_usage(id, Amount::minus)
    }

    fn change_non_preemptible_usage(
        &mut self,
        id: WorkloadId,
        by: impl Fn(Amount, Amount) -> Amount,
    ) -> Option<NodeId> {
        if !self.has_elastic {
            return None;
        }
        let record = self.workloads.get(id)?;
        let queue = self.queues.get_mut(record.queue.index())?;
        if !queue.settings.protects(record.preemption_labels)
            || !record.is_in_scope && record.admitted.is_none()
        {
            return None;
        }
        let fixed = queue.non_preemptible.get_or_insert_default();
        if let Some(running) = &record.admitted {
            let group = self
                .admitted_index
                .group(running.queue, running.usage_group);
            for (of, amount) in group
                .flavor_resources
                .iter()
                .zip(running.amounts.as_slice())
            {
                update_sum(&mut fixed.used, *of, |sum| by(sum, *amount));
            }
        } else {
            for (resource, amount) in total_requests(record) {
                update_sum(&mut fixed.pending, resource, |sum| by(sum, amount));
            }
        }
        Some(record.queue)
    }

    /// Counts all workloads of a queue anew, since its switches have changed. Costs all workloads.
    pub(crate) fn recount_non_preemptible_usage(
        &mut self,
        queue: NodeId,
        elastic: Option<ElasticDefaults>,
    ) {
        self.has_elastic |= elastic.is_some();
        if let Some(queue) = self.queues.get_mut(queue.index()) {
            queue.non_preemptible = None;
        }
        let of_queue = self.workloads.iter().filter(|(_, it)| it.queue == queue);
        let ids: Vec<WorkloadId> = of_queue.map(|(id, _)| id).collect();
        for id in ids {
            self.add_non_preemptible_usage(id);
        }
    }
}

/// What all pods of a workload ask for. That they are pods counts where it is not said how many.
fn total_requests(record: &WorkloadRow) -> impl Iterator<Item = (ResourceId, Amount)> {
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
