//! The latest start of a pending workload, if each workload ends at its maximum execution time or earlier.
//!
//! That a workload runs for its maximum time is not the worst case: one that ends early may let another one start early, which
//! then delays a third one. So the bound holds for every order of starts. Let `T` be the pending workload.
//!
//! **While `T` waits, a workload does not fit.** The scheduler decides until nothing changes any more. Then `T` does not fit, or
//! is not tried since a workload ahead of it in a `StrictFIFO` queue does not fit, or is skipped since the cycle reserves quota
//! for such a workload of another queue. `T` and these workloads are the *blockers*. None of them preempts: there is no bound
//! if the policies permit a preemption among the workloads of the tree.
//!
//! **Free quota.** Without further starts, the free quota of the tree grows until all workloads with a known end have ended
//! ([`timeline`]). A workload that starts with an amount `u` lowers the free quota of a ClusterQueue of the tree by `u` at most.
//! Let `s` be a time from which on all blockers would fit, and `K` what is then free of a flavor and resource in excess of the
//! largest request of a blocker, plus one unit. After `s`, a blocker does not fit only while started workloads use `K` or more of
//! one of the flavors and resources. [`longest_wait_s`] bounds how long the pending workloads can do so, each of which starts
//! once. The sum of these times, after `s`, is the bound, and the least over several `s` is taken.
//!
//! **StrictFIFO alone.** In a tree with one ClusterQueue, which is `StrictFIFO`, and one flavor for each request, workloads start
//! in queue order. Then a run at the maximum times is the worst case: if all workloads before the `n`-th start and end no later
//! than in that run, so does the `n`-th. Later workloads start behind it, if their priority is not higher. The order is not known
//! while one of them is in backoff or being evicted.
//!
//! **Backfill.** The planned start of the head of a ClusterQueue with backfill is a bound by [`lockkeeper_preemption::backfill`].
//! No workload of the queue may come ahead of it later: none is in backoff or being evicted.
//!
//! There is no bound if fields of the input are not considered, if a queue of the tree is elastic or places workloads on nodes,
//! or if a pending workload may use several flavors in more than one of its pod sets or resource groups, since the search for
//! flavors may then never end.

use crate::answer::{Forecast, StartBound, StartCondition};
use crate::contenders::{Amounts, Contender, Contest};
use crate::forecast::forecast;
use crate::free_quota::{Cell, FreeQuota, free, timeline};
use crate::possible_preemption::is_preemption_possible;
use crate::trial::Trial;
use crate::waiting_time::{Demand, longest_wait_s};
use crate::world::World;
use k8s_openapi::jiff::Timestamp;
use lockkeeper_preemption::{FlavorResource, NodeId, State};
use std::collections::{BTreeMap, BTreeSet};

/// The most times after which the waiting times are added.
const TIMES_MAX: usize = 16;

/// The most steps of a run in queue order.
const RUN_STEPS_MAX: usize = 1_000_000;

/// The latest start of a pending workload whose backoff ends at `until_s`, and whose start backfill has planned for `planned_s`,
/// both in seconds since 1970; `None` if there is no proof of one.
///
/// Costs a walk of the cohort path for each end of an admitted workload and each flavor and resource of the blockers, and some
/// hundred passes over the pending workloads of the tree.
pub(crate) fn start_bound(
    world: &World,
    trial: &Trial,
    until_s: Option<i64>,
    planned_s: Option<i64>,
) -> Option<StartBound> {
    if world.is_partial || world.has_unknown_fields || !is_understood(world, trial) {
        return None;
    }
    let mut cluster = trial.cluster.clone();
    let now_s = cluster.now_ms().saturating_add(999).div_euclid(1000);
    let state = cluster.state_mut();
    state.apply_changes();
    let mut contest = Contest::new(world, trial, state)?;
    if is_preemption_possible(state, &contest, specs(world, trial, state)) {
        return None;
    }
    let steps = timeline(state, &contest, now_s)?;
    for running in &contest.running {
        state.remove(running.id);
    }
    keep_possible_starts(state, &mut contest);
    if !starts_alone(world, trial) {
        return None;
    }
    let mut latest_s = latest_start_s(&contest, &steps)?;
    let planned_s = planned_s.filter(|it| !contest.has_returning && *it <= latest_s);
    latest_s = planned_s.unwrap_or(latest_s);
    let is_alone = contest.is_strict && trial.queues.len() == 1;
    if is_alone
        && !contest.has_returning
        && let Some(start_s) = start_in_order_s(&contest, &steps)
    {
        latest_s = latest_s.min(start_s);
    }
    let latest_s = latest_s.max(until_s.unwrap_or(latest_s));
    Some(StartBound {
        time: Timestamp::from_second(latest_s).ok()?.to_string(),
        unless: if is_alone || planned_s.is_some() {
            StartCondition::HigherPriorityArrives
        } else {
            StartCondition::WorkloadArrives
        },
    })
}

/// Whether the core decides on all workloads of the tree by quota alone.
fn is_understood(world: &World, trial: &Trial) -> bool {
    let objects = world.cluster.objects();
    trial.queues.iter().all(|name| {
        let queue = objects.cluster_queue(name);
        queue.is_some_and(|it| it.spec.elastic.is_none() && it.spec.placement.is_none())
    })
}

/// The ClusterQueues of the tree.
fn specs<'a>(
    world: &'a World,
    trial: &'a Trial,
    state: &State,
) -> impl Iterator<Item = (NodeId, &'a lockkeeper_api::cluster_queue::ClusterQueueSpec)> {
    let objects = world.cluster.objects();
    let specs = trial.queues.iter().filter_map(|name| {
        let spec = &objects.cluster_queue(name)?.spec;
        Some((state.queue(name)?, spec))
    });
    let specs: Vec<_> = specs.collect();
    specs.into_iter()
}

/// Removes the alternatives that exceed the free quota of a state without admitted workloads, and the pending workloads that
/// never start, except those ahead of the subject, which then never starts either.
fn keep_possible_starts(state: &mut State, contest: &mut Contest) {
    let mut known: BTreeMap<Cell, i64> = BTreeMap::new();
    let mut fits = |contender: &Contender, amounts: &Amounts| {
        amounts.iter().all(|(of, amount)| {
            let cell = (contender.queue, *of);
            let free = known.entry(cell).or_insert_with(|| free(state, cell));
            *amount <= *free
        })
    };
    let mut keep = |contender: &mut Contender| {
        let all = std::mem::take(&mut contender.alternatives).into_iter();
        let possible = all.filter(|it| fits(contender, it)).collect();
        contender.alternatives = possible;
    };
    keep(&mut contest.subject);
    for contender in &mut contest.pending {
        keep(contender);
    }
    let (own, is_strict) = (contest.subject.queue, contest.is_strict);
    contest.pending.retain(|it| {
        let is_ahead = is_strict && it.queue == own;
        is_ahead || it.is_scalable || !it.alternatives.is_empty()
    });
    for contender in &mut contest.pending {
        // Without quota for all its pods, the scheduler reserves none for it.
        let is_ahead = is_strict && contender.queue == own;
        contender.blocks_its_queue &= is_ahead || !contender.alternatives.is_empty();
    }
}

/// Whether the scheduler admits the workload if there is no other one.
fn starts_alone(world: &World, trial: &Trial) -> bool {
    let mut cluster = trial.cluster.clone();
    let state = cluster.state_mut();
    for key in world.workload_keys().filter(|it| *it != trial.key) {
        if let Some(id) = state.workload(key) {
            state.remove(id);
        }
    }
    if let Some(id) = state.workload(&trial.key) {
        // The backoff is not the subject of this question.
        state.set_backoff(id, i64::MIN);
    }
    let forecasted = forecast(world, cluster, &trial.key).forecast;
    matches!(forecasted, Forecast::Admitted { .. })
}

/// The largest requests of the blockers, by cell, with the alternative of each that fits first.
fn blocked_requests(
    contest: &Contest,
    steps: &[FreeQuota],
) -> Option<(usize, BTreeMap<Cell, i64>)> {
    let mut first_step = 0_usize;
    let mut largest: BTreeMap<Cell, i64> = BTreeMap::new();
    for blocker in contest.blockers() {
        let alternatives = blocker.alternatives.iter();
        let fitting = alternatives.filter_map(|amounts| {
            let fits = |step: &FreeQuota| {
                amounts.iter().all(|(of, amount)| {
                    let free = step.free.get(&(blocker.queue, *of));
                    free.is_some_and(|it| amount <= it)
                })
            };
            Some((steps.iter().position(fits)?, amounts))
        });
        let (step, amounts) = fitting.min_by_key(|(step, _)| *step)?;
        first_step = first_step.max(step);
        for (of, amount) in amounts {
            let request = largest.entry((blocker.queue, *of)).or_default();
            *request = (*request).max(*amount);
        }
    }
    Some((first_step, largest))
}

/// The bound for any order of starts, in seconds since 1970.
fn latest_start_s(contest: &Contest, steps: &[FreeQuota]) -> Option<i64> {
    let (first_step, requests) = blocked_requests(contest, steps)?;
    let all: BTreeSet<FlavorResource> = requests.keys().map(|(_, of)| *of).collect();
    let demands = all.into_iter().map(|of| {
        let pending = contest.pending.iter();
        let demands = pending.filter_map(|it| {
            let amount = *it.most.get(&of)?;
            Some(Demand {
                amount,
                max_s: it.max_s,
            })
        });
        (of, demands.collect::<Vec<_>>())
    });
    let demands: Vec<_> = demands.filter(|(_, it)| !it.is_empty()).collect();
    let later = steps.get(first_step..)?;
    let stride = later.len().div_ceil(TIMES_MAX).max(1);
    let times = later.iter().step_by(stride).chain(later.last());
    let bounds = times.filter_map(|step| {
        let mut latest_s = step.from_s;
        for (of, demands) in &demands {
            let spare = requests.iter().filter(|((_, it), _)| it == of);
            let spare = spare
                .filter_map(|(cell, request)| Some(step.free.get(cell)?.saturating_sub(*request)));
            let threshold = spare.min()?.saturating_add(1);
            latest_s = latest_s.saturating_add(longest_wait_s(demands, threshold)?);
        }
        Some(latest_s)
    });
    bounds.min()
}

/// The start in a run in queue order, in seconds since 1970; `None` if a workload may use several flavors, starts with fewer
/// pods, or never fits.
fn start_in_order_s(contest: &Contest, steps: &[FreeQuota]) -> Option<i64> {
    let mut started: Vec<(Option<i64>, &Amounts)> = Vec::new();
    let mut now_s = steps.first()?.from_s;
    let mut budget = RUN_STEPS_MAX;
    for contender in contest.pending.iter().chain([&contest.subject]) {
        let [amounts] = contender.alternatives.as_slice() else {
            return None;
        };
        if contender.is_scalable {
            return None;
        }
        loop {
            budget = budget.checked_sub(started.len().saturating_add(1))?;
            if fits_at(contender, amounts, steps, &started, now_s) {
                break;
            }
            let ends = started.iter().filter_map(|(end_s, _)| *end_s);
            let next = ends.chain(steps.iter().map(|it| it.from_s));
            now_s = next.filter(|it| *it > now_s).min()?;
        }
        started.push((contender.max_s.map(|it| now_s.saturating_add(it)), amounts));
    }
    Some(now_s)
}

fn fits_at(
    contender: &Contender,
    amounts: &Amounts,
    steps: &[FreeQuota],
    started: &[(Option<i64>, &Amounts)],
    now_s: i64,
) -> bool {
    let known = steps.partition_point(|it| it.from_s <= now_s);
    let Some(step) = known.checked_sub(1).and_then(|it| steps.get(it)) else {
        return false;
    };
    let runs = |(end_s, _): &&(Option<i64>, &Amounts)| end_s.is_none_or(|it| it > now_s);
    amounts.iter().all(|(of, amount)| {
        let used = started.iter().filter(runs);
        let used = used.filter_map(|(_, it)| it.get(of));
        let used = used.fold(*amount, |sum, it| sum.saturating_add(*it));
        let free = step.free.get(&(contender.queue, *of));
        free.is_some_and(|it| used <= *it)
    })
}
