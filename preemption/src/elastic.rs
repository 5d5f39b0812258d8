//! Elastic ClusterQueues: quota as in job-level preemption ([`crate::job`]).
//!
//! Nominal quota is min, nominal quota and borrowing limit together are max; without a cohort nothing is borrowed,
//! and max is min. The gates of the proposal apply in addition to the cohort's `available`. A workload that min
//! rejects does not preempt. A preemptible workload that max rejects may preempt preemptible workloads of its own queue
//! until max permits it; the proposal lets it wait instead (ADR 0034). The rest is as in other queues, except that a
//! non-preemptible workload is never a victim, and that only a workload that may trigger preemption is a preemptor.
//!
//! The proposal has no flavors. Requests of pending non-preemptible workloads count against the min of the
//! flavors in their order, up to the part that non-preemptible usage leaves free.

use crate::amount::Amount;
use crate::ids::{CellId, FlavorResource, NodeId};
use crate::job::Preemptibility;
use crate::non_preemptible::NonPreemptibleUsage;
use crate::queue::QueueSettings;
use crate::quota::{Tree, UsageStore, View};
use crate::trace::FlavorVerdict;

/// The input of the gates of an elastic queue.
#[derive(Clone, Copy)]
pub(crate) struct ElasticGate<'a> {
    /// The preemptibility of the workload.
    pub(crate) preemptibility: Preemptibility,
    pub(crate) queue: NodeId,
    pub(crate) settings: &'a QueueSettings,
    pub(crate) non_preemptible: &'a NonPreemptibleUsage,
    pub(crate) tree: &'a Tree,
    /// The committed usage, without the changes of a view.
    pub(crate) usage: &'a Vec<Amount>,
}

impl ElasticGate<'_> {
    /// Returns the reason if a workload that requests this amount in total is rejected: R1 for a
    /// non-preemptible one, R2 for a preemptible one. `available` checks that a non-preemptible one stays
    /// within max, since preemption may help there (R6).
    pub(crate) fn rejection(&self, of: FlavorResource, requested: Amount) -> Option<FlavorVerdict> {
        match self.preemptibility {
            Preemptibility::NonPreemptible => {
                let sum = self.non_preemptible.used(of).plus(requested);
                let min = self.min(of);
                (sum > min).then_some(FlavorVerdict::ExceedsMin { of, sum, min })
            }
            Preemptibility::Preemptible => {
                let reserved = self.reserved_for_non_preemptible(of);
                let cell = self.tree.node(self.queue).cell(of);
                let used = cell.map_or(Amount::ZERO, |it| self.usage.usage(it));
                let preemptible = used.minus(self.non_preemptible.used(of)).or_zero();
                let sum = reserved.plus(preemptible).plus(requested);
                let max = self.max(of);
                (sum > max).then_some(FlavorVerdict::ExceedsMax {
                    of,
                    sum,
                    reserved,
                    max,
                })
            }
        }
    }

    /// Returns the usage to which preemption must reduce the queue, if only its own preemptible workloads make the
    /// request exceed max; `None` if preemption is not needed or cannot help.
    pub(crate) fn own_usage_max(
        &self,
        view: &View<'_>,
        cell: CellId,
        of: FlavorResource,
        requested: Amount,
    ) -> Option<Amount> {
        let Some(FlavorVerdict::ExceedsMax {
            sum, reserved, max, ..
        }) = self.rejection(of, requested)
        else {
            return None;
        };
        // Without any preemptible workload the request and the reserved quota remain.
        let can_fit = reserved.plus(requested) <= max;
        can_fit.then(|| view.usage(cell).minus(sum.minus(max)))
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
        // Without a cohort no quota can be borrowed, so max is min.
        if node.parent.is_none() {
            return cell.nominal;
        }
        cell.ceiling.plus(cell.local)
    }

    /// The lesser of min and the usage and requests of non-preemptible workloads.
    fn reserved_for_non_preemptible(&self, of: FlavorResource) -> Amount {
        let used = self.non_preemptible.used(of);
        used.plus(self.pending_share(of)).min(self.min(of))
    }

    /// The part of the pending requests that falls to this flavor.
    fn pending_share(&self, of: FlavorResource) -> Amount {
        let resource = of.resource;
        let pending = self.non_preemptible.pending.get(&resource);
        let mut rest = pending.copied().unwrap_or_default();
        let mut groups = self.settings.groups.iter();
        let group = groups.find(|it| it.resources.contains(&resource));
        for flavor in group.into_iter().flat_map(|it| &it.flavors) {
            let flavor = flavor.flavor;
            let pair = FlavorResource { flavor, resource };
            // Each flavor gets at most the min that non-preemptible usage leaves free.
            let part = rest.min(
                self.min(pair)
                    .minus(self.non_preemptible.used(pair))
                    .or_zero(),
            );
            if pair == of {
                return part;
            }
            rest = rest.minus(part);
        }
        Amount::ZERO
    }
}

impl QueueSettings {
    /// Returns whether workloads with these labels are never victims here.
    pub(crate) fn protects(&self, labels: crate::job::PreemptionLabels) -> bool {
        let class = self.elastic.map(|it| it.preemptibility(labels));
        class == Some(Preemptibility::NonPreemptible)
    }

    /// Returns whether workloads with these labels may preempt: not with the policy `Never`, whatever the queue, and in
    /// an elastic queue only those that may trigger preemption.
    pub(crate) fn may_preempt(&self, labels: crate::job::PreemptionLabels) -> bool {
        let elastic = self.elastic;
        !labels.never_preempts && elastic.is_none_or(|it| it.may_trigger_preemption(labels))
    }
}
