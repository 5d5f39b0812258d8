//! Records the use of quota over time.

use super::result::QuotaUsage;
use lockkeeper_preemption::{Amount, FlavorResource, NodeId, State};
use std::collections::BTreeMap;

/// The use of the quota of one queue for one flavor and resource.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    used: i64,
    integral: i64,
    peak: i64,
    /// Up to when the integral counts, in seconds.
    counted_until_s: i64,
    /// Whether it changed in the current instant.
    is_changed: bool,
}

/// The used quota of a job: slots and amounts.
pub(super) type HeldQuota = Vec<(usize, i64)>;

/// The use of all quotas.
#[derive(Clone, Debug, Default)]
pub(super) struct UsageRecord {
    slots: Vec<Slot>,
    keys: BTreeMap<(NodeId, FlavorResource), usize>,
    changed: Vec<usize>,
}

impl UsageRecord {
    /// Adds the usage of a job in a queue; returns what [`Self::release`] subtracts.
    pub(super) fn hold(
        &mut self,
        queue: NodeId,
        usage: &[(FlavorResource, Amount)],
        now_s: i64,
        held: &mut HeldQuota,
    ) {
        for (of, amount) in usage.iter().filter(|(_, amount)| *amount != Amount::ZERO) {
            let count = self.keys.len();
            let slot = *self.keys.entry((queue, *of)).or_insert(count);
            if slot == count && self.slots.len() == count {
                self.slots.push(Slot::default());
            }
            self.change(slot, amount.get(), now_s);
            held.push((slot, amount.get()));
        }
    }

    /// Subtracts the usage of a job.
    pub(super) fn release(&mut self, held: &mut HeldQuota, now_s: i64) {
        // Also frees the memory: most jobs end here.
        for (slot, amount) in std::mem::take(held) {
            self.change(slot, amount.saturating_neg(), now_s);
        }
    }

    fn change(&mut self, at: usize, amount: i64, now_s: i64) {
        if let Some(slot) = self.slots.get_mut(at) {
            slot.count_until(now_s);
            slot.used = slot.used.saturating_add(amount);
            if !std::mem::replace(&mut slot.is_changed, true) {
                self.changed.push(at);
            }
        }
    }

    /// Ends an instant: updates the peaks.
    pub(super) fn end_instant(&mut self) {
        for at in self.changed.drain(..) {
            if let Some(slot) = self.slots.get_mut(at) {
                slot.peak = slot.peak.max(slot.used);
                slot.is_changed = false;
            }
        }
    }

    /// Returns the use of all quotas until a time, sorted by names.
    pub(super) fn totals(mut self, state: &State, until_s: i64) -> Vec<QuotaUsage> {
        for slot in &mut self.slots {
            slot.count_until(until_s);
        }
        let keys = self.keys.iter();
        let usage = keys.filter_map(|((queue, of), slot)| {
            // Quota that was used only within instants is left out.
            let slot = self.slots.get(*slot).filter(|it| it.peak > 0)?;
            Some(QuotaUsage {
                cluster_queue: state.node_view(*queue).name().to_owned(),
                flavor: state.flavor_name(of.flavor).to_owned(),
                resource: state.resource_name(of.resource).to_owned(),
                integral: slot.integral,
                peak: slot.peak,
            })
        });
        let mut usage: Vec<QuotaUsage> = usage.collect();
        let key = |it: &QuotaUsage| {
            (
                it.cluster_queue.clone(),
                it.flavor.clone(),
                it.resource.clone(),
            )
        };
        usage.sort_by_cached_key(key);
        usage
    }
}

impl Slot {
    fn count_until(&mut self, now_s: i64) {
        let elapsed_s = now_s.saturating_sub(self.counted_until_s);
        self.integral = self
            .integral
            .saturating_add(self.used.saturating_mul(elapsed_s));
        self.counted_until_s = now_s;
    }
}
