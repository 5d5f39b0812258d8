//! A plain reference implementation of KEP-5710: it copies whole clusters and caches nothing. The core must make the
//! same decisions.

use super::clusters::{BuiltCluster, ModelCluster, RESTRICTED, SMALL, is_within};
use super::inter_pod::{domains_to_try, is_permitted};
use super::properties::cluster_tapes;
use crate::model::choices::{Choices, cases_from_env, check};
use lockkeeper_preemption::gang::{DisruptionMode, GangOutcome, GangTrace, SchedulerCompatibility};
use lockkeeper_preemption::{HostId, PodId};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::cell::RefCell;
use std::cmp::Reverse;

const CASES: u32 = 3_000;

/// The pods that are preempted together: job and pods.
type Unit = (usize, Vec<usize>);

/// The node of each pending pod, by its index in the job.
type Placements = Vec<(usize, Option<usize>)>;

#[derive(Debug, PartialEq)]
pub enum ReferenceDecision {
    Fits(Placements),
    Preempt(Placements, Vec<Unit>),
    Infeasible,
}

/// The units of a lower priority with pods on one of these nodes, the most important first.
pub fn units_below(town: &ModelCluster, job: usize, hosts: &[usize]) -> Vec<Unit> {
    let mut all = Vec::new();
    for (at, other) in town.jobs.iter().enumerate() {
        let running: Vec<usize> = (0..other.pods.len())
            .filter(|it| other.pods[*it].host.is_some())
            .collect();
        if running.is_empty() || other.preemption_priority >= town.jobs[job].priority {
            continue;
        }
        match other.mode {
            Some(DisruptionMode::PodGroup) => all.push((at, running)),
            _ => all.extend(running.into_iter().map(|it| (at, vec![it]))),
        }
    }
    all.retain(|(at, pods)| {
        let mut on = pods.iter().map(|it| town.jobs[*at].pods[*it].host.unwrap());
        on.any(|it| hosts.contains(&it))
    });
    all.sort_by_key(|(at, pods)| {
        let other = &town.jobs[*at];
        let name = match other.mode {
            Some(DisruptionMode::PodGroup) => format!("job{at}"),
            _ => format!("job{at}-{}", pods[0]),
        };
        (
            (
                Reverse(other.preemption_priority),
                Reverse(other.mode.is_some()),
            ),
            (Reverse(pods.len()), other.started_at_ns, name),
        )
    });
    all
}

fn without(town: &ModelCluster, gone: &[Unit]) -> ModelCluster {
    let mut town = town.clone();
    for (job, pods) in gone {
        for pod in pods {
            // Neither running nor pending.
            town.jobs[*job].pods[*pod].host = Some(usize::MAX);
        }
    }
    town
}

/// First fit of the pending pods, if need be in one domain of their affinity.
fn place(town: &ModelCluster, job: usize, hosts: &[usize]) -> Placements {
    let placed = |it: &Placements| it.iter().filter(|(_, host)| host.is_some()).count();
    let mut best = place_in(town, job, hosts);
    if placed(&best) < best.len() {
        for domain in domains_to_try(town, job, hosts) {
            let seats = place_in(town, job, &domain);
            if placed(&seats) > placed(&best) {
                best = seats;
            }
        }
    }
    best
}

fn place_in(town: &ModelCluster, job: usize, hosts: &[usize]) -> Placements {
    let mut town = town.clone();
    let waits = |at: &usize| town.jobs[job].pods[*at].host.is_none();
    let pending: Vec<usize> = (0..town.jobs[job].pods.len()).filter(waits).collect();
    let mut seats = Vec::new();
    for at in pending {
        let asks = town.jobs[job].pods[at].requests;
        let fits = |it: &&usize| {
            town.admits(**it, &town.jobs[job])
                && is_within(asks, town.free(**it))
                && is_permitted(&town, job, **it)
        };
        let host = hosts.iter().find(fits).copied();
        town.jobs[job].pods[at].host = host;
        seats.push((at, host));
    }
    seats
}

/// Whether the preemptor's pods fit on their nodes, one after another.
fn fits_on(town: &ModelCluster, job: usize, seats: &Placements) -> bool {
    let mut town = town.clone();
    seats.iter().all(|(pod, host)| {
        let Some(host) = *host else {
            return true;
        };
        let asks = town.jobs[job].pods[*pod].requests;
        let fits = is_within(asks, town.free(host)) && is_permitted(&town, job, host);
        town.jobs[job].pods[*pod].host = Some(host);
        fits
    })
}

fn is_enough(town: &ModelCluster, job: usize, seats: &Placements) -> bool {
    let job = &town.jobs[job];
    let running = job.pods.iter().filter(|it| it.host.is_some()).count();
    let least = match job.mode {
        None => 1,
        Some(_) => job.count_min.saturating_sub(running).max(1),
    };
    seats.iter().filter(|(_, host)| host.is_some()).count() >= least
}

/// How many pods of each unit, in order of importance, violate a budget if all more important units are disrupted too.
pub fn budget_violations(town: &ModelCluster, units: &[Unit]) -> Vec<usize> {
    let mut left: Vec<i32> = town.budgets.iter().map(|it| it.1).collect();
    let mut counts = Vec::new();
    for (job, pods) in units {
        let mut count = 0;
        for _ in pods {
            for (at, (label, _)) in town.budgets.iter().enumerate() {
                if town.jobs[*job].label == Some(*label) {
                    left[at] -= 1;
                    if left[at] < 0 {
                        count += 1;
                        break;
                    }
                }
            }
        }
        counts.push(count);
    }
    counts
}

/// One domain: the placement and the victims, the most important first.
pub fn search(town: &ModelCluster, job: usize, hosts: &[usize]) -> Option<(Placements, Vec<Unit>)> {
    let potential = units_below(town, job, hosts);
    if potential.is_empty() {
        return None;
    }
    let emptied = without(town, &potential);
    let first = place(&emptied, job, hosts);
    if !is_enough(&emptied, job, &first) {
        return None;
    }
    let counts = budget_violations(town, &potential);
    let mut gone = potential.clone();
    for (unit, _) in potential
        .iter()
        .zip(&counts)
        .filter(|(_, count)| **count > 0)
    {
        let rest: Vec<Unit> = gone.iter().filter(|it| *it != unit).cloned().collect();
        if fits_on(&without(town, &rest), job, &first) {
            gone = rest;
        }
    }
    let priority = |unit: &Unit| town.jobs[unit.0].preemption_priority;
    let upto = |most: i32| -> Vec<Unit> {
        gone.iter()
            .filter(|it| priority(it) <= most)
            .cloned()
            .collect()
    };
    let mut priorities: Vec<i32> = potential.iter().map(priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let (mut low, mut high) = (0, priorities.len() - 1);
    let mut seats = None;
    while low < high {
        let middle = usize::midpoint(low, high);
        let reduced = without(town, &upto(priorities[middle]));
        let found = place(&reduced, job, hosts);
        if is_enough(&reduced, job, &found) {
            high = middle;
            seats = Some(found);
        } else {
            low = middle + 1;
        }
    }
    let mut gone = upto(priorities[high]);
    let seats = seats.unwrap_or(first);
    loop {
        let before = gone.len();
        for unit in gone.clone() {
            let rest: Vec<Unit> = gone.iter().filter(|it| **it != unit).cloned().collect();
            if fits_on(&without(town, &rest), job, &seats) {
                gone = rest;
            }
        }
        // A reprieved pod may give another one the affinity that it needs.
        if gone.len() == before {
            return Some((seats, gone));
        }
    }
}

/// A gang, in the whole cluster.
fn decide(town: &ModelCluster, job: usize) -> ReferenceDecision {
    let hosts: Vec<usize> = (0..town.hosts.len()).collect();
    let seats = place(town, job, &hosts);
    if is_enough(town, job, &seats) {
        return ReferenceDecision::Fits(seats);
    }
    match search(town, job, &hosts) {
        None => ReferenceDecision::Infeasible,
        Some((seats, victims)) if victims.is_empty() => ReferenceDecision::Fits(seats),
        Some((seats, victims)) => ReferenceDecision::Preempt(seats, victims),
    }
}

/// Calls a function with random clusters, half of them with pods that restrict each other.
fn for_each_cluster(test: impl Fn(&ModelCluster, &BuiltCluster) -> TestCaseResult) {
    check(
        CASES,
        &(cluster_tapes(), any::<bool>()),
        |(tape, has_constraints)| {
            let size = if has_constraints { RESTRICTED } else { SMALL };
            let town = ModelCluster::random(&mut Choices::new(&tape), size);
            test(&town, &town.build(SchedulerCompatibility::Lockkeeper))
        },
    );
}

/// A decision of the core, with the pods and nodes of the model.
fn reference_decision(built: &BuiltCluster, outcome: GangOutcome) -> ReferenceDecision {
    let named = |placement: Vec<(PodId, Option<HostId>)>| -> Placements {
        let pods = placement.into_iter().map(|(pod, host)| {
            let host = host.map(|it| built.host_of(it));
            (built.job_and_pod_of(pod).1, host)
        });
        pods.collect()
    };
    match outcome {
        GangOutcome::Fits { placement } => ReferenceDecision::Fits(named(placement)),
        GangOutcome::Preempt(plan) => {
            let victims = plan.victims.iter().map(|unit| {
                let pods = built.pods_of(*unit);
                (pods[0].0, pods.iter().map(|it| it.1).collect())
            });
            let victims = victims.collect();
            ReferenceDecision::Preempt(named(plan.placement), victims)
        }
        GangOutcome::Infeasible { .. } => ReferenceDecision::Infeasible,
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn gang_decision_matches_reference() {
    let counts = RefCell::new([0_usize; 3]);
    for_each_cluster(|town, built| {
        for job in town.waiting() {
            if town.jobs[job].mode.is_none() {
                continue;
            }
            let got = reference_decision(built, built.decide(town, job).outcome);
            let expected = decide(town, job);
            let at = match &expected {
                ReferenceDecision::Fits(_) => 0,
                ReferenceDecision::Preempt(..) => 1,
                ReferenceDecision::Infeasible => 2,
            };
            counts.borrow_mut()[at] += 1;
            prop_assert_eq!(got, expected, "job{} of {:#?}", job, town);
        }
        Ok(())
    });
    assert!(cases_from_env().is_some() || counts.borrow().iter().all(|it| *it > 100));
}

/// For a single pod every node is searched separately.
#[test]
fn pod_decision_matches_reference_on_each_node() {
    for_each_cluster(|town, built| {
        for job in town.waiting() {
            if town.jobs[job].mode.is_some() {
                continue;
            }
            let pods = built.waiting(town, job);
            let ask = built.request(job, &pods);
            let run = built.cluster.dry_run(&ask, &mut GangTrace::off());
            for host in 0..town.hosts.len() {
                let of_host = Some(built.hosts[host]);
                let plan = run.candidates.iter().find(|it| it.host == of_host);
                let got = plan.map(|plan| {
                    let pods = plan.victims.iter().map(|it| built.pods_of(*it));
                    pods.collect::<Vec<_>>()
                });
                let is_permitted = town.admits(host, &town.jobs[job]);
                let expected = search(town, job, &[host]).filter(|_| is_permitted);
                let expected = expected.map(|(_, units)| {
                    let pods = units.into_iter().map(|(job, pods)| {
                        pods.into_iter().map(|it| (job, it)).collect::<Vec<_>>()
                    });
                    pods.collect::<Vec<_>>()
                });
                let expected = expected.filter(|it| !it.is_empty());
                prop_assert_eq!(got, expected, "job{} on h{} of {:#?}", job, host, town);
            }
        }
        Ok(())
    });
}
