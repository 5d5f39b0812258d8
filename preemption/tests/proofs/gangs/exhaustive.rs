//! How far greedy decisions are from the optimum: tries every set of victims and every placement in small clusters.

use super::clusters::{BuiltCluster, ClusterSize, ModelCluster, Requests, is_within, minus};
use super::properties::cluster_tapes;
use super::reference::{budget_violations, units_below};
use crate::model::choices::{Choices, check};
use lockkeeper_preemption::gang::{GangOptions, GangOutcome, Score};
use proptest::prelude::*;
use std::cell::RefCell;

const CASES: u32 = 4_000;
/// The maximum number of potential victims for which all sets are tried.
const UNITS_MAX: usize = 12;

/// Without disruption budgets, which have precedence over priorities.
const CLUSTER_SIZE: ClusterSize = ClusterSize {
    hosts: 5,
    jobs: 14,
    pods: 4,
    has_budgets: false,
    has_constraints: false,
};

/// The cost of the best set of victims: its highest priority, then its number of pods.
type Cost = (i32, usize);

fn best_cost(town: &ModelCluster, job: usize) -> Option<Cost> {
    let hosts: Vec<usize> = (0..town.hosts.len()).collect();
    let units = units_below(town, job, &hosts);
    let mut best: Option<Cost> = None;
    for set in 0..1_u32 << units.len() {
        let gone = units
            .iter()
            .enumerate()
            .filter(|(at, _)| set >> at & 1 == 1);
        let gone: Vec<_> = gone.map(|(_, it)| it).collect();
        let priorities = gone.iter().map(|it| town.jobs[it.0].preemption_priority);
        let cost = (
            priorities.max().unwrap_or(i32::MIN),
            gone.iter().map(|it| it.1.len()).sum(),
        );
        if best.is_some_and(|it| it <= cost) {
            continue;
        }
        let mut after = town.clone();
        for (other, pods) in &gone {
            for pod in pods {
                after.jobs[*other].pods[*pod].host = None;
            }
        }
        let mut free: Vec<Requests> = hosts.iter().map(|it| after.free(*it)).collect();
        let wants = &town.jobs[job];
        let asks: Vec<Requests> = wants.pods.iter().map(|it| it.requests).collect();
        if packs(town, job, &asks, wants.count_min, &mut free) {
            best = Some(cost);
        }
    }
    best
}

/// Whether any placement places this many pods.
fn packs(
    town: &ModelCluster,
    job: usize,
    asks: &[Requests],
    least: usize,
    free: &mut [Requests],
) -> bool {
    let Some((first, rest)) = asks.split_first() else {
        return least == 0;
    };
    for host in 0..free.len() {
        if town.admits(host, &town.jobs[job]) && is_within(*first, free[host]) {
            free[host] = minus(free[host], *first);
            let is_found = packs(town, job, rest, least.saturating_sub(1), free);
            free[host] = super::clusters::plus(free[host], *first);
            if is_found {
                return true;
            }
        }
    }
    rest.len() >= least && packs(town, job, rest, least, free)
}

#[derive(Debug, Default)]
struct Tally {
    /// Cases in which some set of victims is enough, or none is needed.
    possible: usize,
    /// Cases with a placement.
    found: usize,
    /// Cases in which the most important victim has the lowest possible priority.
    least_priority: usize,
    /// Cases in which the number of pods is the lowest possible with that priority.
    best: usize,
    /// The number of preempted pods in these cases, and the optimum.
    pods: usize,
    pods_best: usize,
}

impl Tally {
    /// Counts a result against the optimum, if preemption is needed.
    fn record(&mut self, got: Option<Cost>, best: Option<Cost>) {
        let Some(best) = best.filter(|it| it.1 > 0) else {
            return;
        };
        self.possible += 1;
        let Some(got) = got else {
            return;
        };
        self.found += 1;
        if got.0 == best.0 {
            self.least_priority += 1;
            self.best += usize::from(got == best);
            self.pods += got.1;
            self.pods_best += best.1;
        }
    }
}

/// The cost as compared here, and the score.
fn cost(built: &BuiltCluster, outcome: &GangOutcome) -> Option<(Cost, Option<Score>)> {
    match outcome {
        GangOutcome::Fits { .. } => Some(((i32::MIN, 0), None)),
        GangOutcome::Preempt(plan) => {
            let first = built.cluster.units().get(plan.victims[0]).unwrap();
            let pods = plan.victims.iter().map(|it| built.pods_of(*it).len());
            Some(((first.priority(), pods.sum()), Some(plan.score)))
        }
        _ => None,
    }
}

#[test]
fn greedy_decision_is_rarely_far_from_optimum() {
    let tallies = RefCell::new([Tally::default(), Tally::default()]);
    check(CASES, &cluster_tapes(), |tape| {
        let town = ModelCluster::random(&mut Choices::new(&tape), CLUSTER_SIZE);
        let order: Vec<usize> = (0..town.jobs.len()).collect();
        let clusters = [false, true].map(|is_thorough| {
            let options = GangOptions {
                tries_both_strategies: is_thorough,
                ..GangOptions::default()
            };
            town.build_with(options, &order)
        });
        let hosts: Vec<usize> = (0..town.hosts.len()).collect();
        for job in town.waiting() {
            let units = units_below(&town, job, &hosts);
            assert!(budget_violations(&town, &units).iter().all(|it| *it == 0));
            if town.jobs[job].mode.is_none() || units.len() > UNITS_MAX {
                continue;
            }
            let got = clusters
                .each_ref()
                .map(|built| cost(built, &built.decide(&town, job).outcome));
            // Both strategies together are never worse than one, and no plan is better than the optimum.
            if let Some((_, score)) = got[0] {
                prop_assert!(got[1].is_some_and(|it| it.1 <= score));
            }
            let best = best_cost(&town, job);
            for (got, tally) in got.iter().zip(tallies.borrow_mut().iter_mut()) {
                let got = got.map(|it| it.0);
                prop_assert!(got.is_none() || best.is_some_and(|it| it <= got.unwrap()));
                tally.record(got, best);
            }
        }
        Ok(())
    });
    let [tally, thorough] = tallies.into_inner();
    println!("{tally:?}\nthorough: {thorough:?}");
    // With fewer cases than usual the figures are not meaningful.
    if crate::model::choices::cases_from_env().is_none() {
        assert!(tally.possible > 500, "too few clusters: {tally:?}");
        assert!(tally.found * 100 >= tally.possible * 95, "{tally:?}");
        assert!(tally.least_priority * 100 >= tally.found * 90, "{tally:?}");
    }
}
