//! The search for the smallest increases of quota, for both limits of a ClusterQueue.

use crate::change::AmountChange;
use crate::quota::{Shortage, shortages};
use crate::trial::{Outcome, Trial};
use lockkeeper_api::cluster_queue::ClusterQueueSpec;
use lockkeeper_api::quota::ResourceQuota;
use lockkeeper_cluster_state::quantity;
use lockkeeper_preemption::Amount;
use std::collections::BTreeSet;

/// The most combinations of flavors that are tried.
const COMBINATIONS_MAX: usize = 32;

/// The most results.
const RESULTS_MAX: usize = 3;

/// How one quota of a ClusterQueue is changed.
pub(super) trait QuotaLimit {
    /// The current value in the core's units; `None` if there is no such limit, or it cannot be raised.
    fn current(quota: &ResourceQuota) -> Option<i64>;
    /// Sets the value, in the core's units.
    fn set(quota: &mut ResourceQuota, value: i64);
}

/// An increase of one quota, in the core's units.
#[derive(Clone, Debug)]
struct Increase {
    flavor: String,
    resource: String,
    by: i64,
}

/// The smallest increases with which the workload fits: one list for each choice of flavors.
pub(super) fn smallest_increases<L: QuotaLimit>(trial: &mut Trial) -> Vec<Vec<AmountChange>> {
    let shortages = shortages(trial);
    let mut results: Vec<Vec<AmountChange>> = Vec::new();
    for flavors in combinations(trial, &shortages) {
        let short = shortages
            .iter()
            .filter(|it| flavors.contains(it.flavor.as_str()) && it.short > 0);
        let mut increases: Vec<Increase> = short
            .map(|it| Increase {
                flavor: it.flavor.clone(),
                resource: it.resource.clone(),
                by: it.short,
            })
            .collect();
        if increases.is_empty() || !fits::<L>(trial, &increases) {
            continue;
        }
        for at in 0..increases.len() {
            shrink::<L>(trial, &mut increases, at);
        }
        increases.retain(|it| it.by > 0);
        let spec = &trial.queue.spec;
        let amounts: Vec<AmountChange> = increases
            .iter()
            .filter_map(|it| amount_change::<L>(spec, it))
            .collect();
        if !amounts.is_empty() && !results.contains(&amounts) {
            results.push(amounts);
        }
    }
    results.sort_by_key(Vec::len);
    results.truncate(RESULTS_MAX);
    results
}

/// The choices of a flavor for each group of resources that the workload requests.
fn combinations(trial: &Trial, shortages: &[Shortage]) -> Vec<BTreeSet<String>> {
    let mut all = vec![BTreeSet::new()];
    for group in &trial.queue.spec.resource_groups {
        let flavors = group.flavors.iter().map(|it| it.name.as_str());
        let flavors: Vec<&str> = flavors
            .filter(|name| shortages.iter().any(|it| it.flavor == *name))
            .collect();
        if flavors.is_empty() {
            continue;
        }
        let extended = all.iter().flat_map(|chosen: &BTreeSet<String>| {
            flavors.iter().map(|flavor| {
                let mut chosen = chosen.clone();
                chosen.insert((*flavor).to_owned());
                chosen
            })
        });
        all = extended.take(COMBINATIONS_MAX).collect();
    }
    all
}

/// Reduces one increase to the smallest value with which the workload fits. More quota never makes it unfit, so a binary
/// search finds it.
fn shrink<L: QuotaLimit>(trial: &mut Trial, increases: &mut [Increase], at: usize) {
    let Some(by) = increases.get(at).map(|it| it.by) else {
        return;
    };
    let (mut low, mut high) = (0_i64, by);
    while low < high {
        let middle = low.midpoint(high);
        if let Some(increase) = increases.get_mut(at) {
            increase.by = middle;
        }
        if fits::<L>(trial, increases) {
            high = middle;
        } else {
            low = middle.saturating_add(1);
        }
    }
    if let Some(increase) = increases.get_mut(at) {
        increase.by = high;
    }
}

fn fits<L: QuotaLimit>(trial: &mut Trial, increases: &[Increase]) -> bool {
    let mut is_possible = true;
    let outcome = trial.with_queue(|spec| {
        for increase in increases {
            let quota = quota_of(spec, &increase.flavor, &increase.resource);
            let raised = quota.and_then(|it| Some((L::current(it)?.checked_add(increase.by)?, it)));
            match raised {
                Some((value, quota)) => L::set(quota, value),
                None => is_possible = false,
            }
        }
    });
    is_possible && outcome == Outcome::Fits
}

fn quota_of<'a>(
    spec: &'a mut ClusterQueueSpec,
    flavor: &str,
    resource: &str,
) -> Option<&'a mut ResourceQuota> {
    let flavors = spec
        .resource_groups
        .iter_mut()
        .flat_map(|it| &mut it.flavors);
    let mut quotas = flavors
        .filter(|it| it.name == flavor)
        .flat_map(|it| &mut it.resources);
    quotas.find(|it| it.name == resource)
}

fn amount_change<L: QuotaLimit>(
    spec: &ClusterQueueSpec,
    increase: &Increase,
) -> Option<AmountChange> {
    let mut spec = spec.clone();
    let quota = quota_of(&mut spec, &increase.flavor, &increase.resource)?;
    let to = L::current(quota)?.checked_add(increase.by)?;
    let text = |amount: i64| quantity(&increase.resource, Amount::new(amount)).to_string();
    Some(AmountChange {
        flavor: increase.flavor.clone(),
        resource: increase.resource.clone(),
        by: text(increase.by),
        to: text(to),
    })
}
