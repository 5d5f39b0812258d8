//! Properties of every decision.

use super::clusters::{BuiltCluster, ClusterSize, ModelCluster, RESTRICTED, SMALL, is_within};
use super::inter_pod::is_permitted;
use crate::model::choices::{Choices, MODEL_BYTES, check};
use lockkeeper_preemption::gang::{
    DisruptionMode, GangOutcome, GangPlan, GangTrace, SchedulerCompatibility,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeSet;

const CASES: u32 = 2_000;
const BOTH: [SchedulerCompatibility; 2] = [
    SchedulerCompatibility::Lockkeeper,
    SchedulerCompatibility::KubeScheduler,
];

pub fn cluster_tapes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), MODEL_BYTES)
}

/// Decides on every pending job.
fn for_each_decision(
    size: ClusterSize,
    test: impl Fn(&ModelCluster, &BuiltCluster, usize, GangOutcome) -> TestCaseResult,
) {
    check(CASES, &cluster_tapes(), |tape| {
        let town = ModelCluster::random(&mut Choices::new(&tape), size);
        for compatibility in BOTH {
            let built = town.build(compatibility);
            for job in town.waiting() {
                let outcome = built.decide(&town, job).outcome;
                test(&town, &built, job, outcome)?;
            }
        }
        Ok(())
    });
}

/// Decides on every pending job, with and without pods that restrict each other.
fn for_each_small_decision(
    test: impl Fn(&ModelCluster, &BuiltCluster, usize, GangOutcome) -> TestCaseResult,
) {
    for size in [SMALL, RESTRICTED] {
        for_each_decision(size, &test);
    }
}

/// Whether the pods of a placement fit on permitted nodes without these victims.
pub fn fits(
    town: &ModelCluster,
    gone: &BTreeSet<(usize, usize)>,
    seats: &[((usize, usize), usize)],
) -> bool {
    let mut after = town.clone();
    for (job, pod) in gone {
        after.jobs[*job].pods[*pod].host = None;
    }
    seats.iter().all(|((job, pod), host)| {
        let asks = town.jobs[*job].pods[*pod].requests;
        let is_free = is_within(asks, after.free(*host)) && is_permitted(&after, *job, *host);
        after.jobs[*job].pods[*pod].host = Some(*host);
        is_free && town.admits(*host, &town.jobs[*job])
    })
}

fn victim_pods(built: &BuiltCluster, plan: &GangPlan) -> BTreeSet<(usize, usize)> {
    plan.victims
        .iter()
        .flat_map(|it| built.pods_of(*it))
        .collect()
}

/// Every placed pod fits on its node without the victims, and enough pods of the gang are placed.
fn check_all_or_nothing_and_fits(
    town: &ModelCluster,
    built: &BuiltCluster,
    job: usize,
    outcome: &GangOutcome,
) -> TestCaseResult {
    let (placement, gone) = match outcome {
        GangOutcome::Fits { placement } => (placement, BTreeSet::new()),
        GangOutcome::Preempt(plan) => (&plan.placement, victim_pods(built, plan)),
        _ => return Ok(()),
    };
    let seats = built.placements(placement);
    prop_assert!(fits(town, &gone, &seats), "{:?} of {:#?}", outcome, town);
    let pods = &town.jobs[job].pods;
    let running = pods.iter().filter(|it| it.host.is_some()).count();
    prop_assert!(seats.len() + running >= town.jobs[job].count_min.min(pods.len()));
    Ok(())
}

#[test]
fn whole_preemptor_fits_after_victims_are_removed() {
    for_each_small_decision(|town, built, job, outcome| {
        check_all_or_nothing_and_fits(town, built, job, &outcome)
    });
}

/// A traced decision searches every node, and one without a trace only those that may be the best.
#[test]
fn traced_decision_has_the_same_outcome() {
    let many_nodes = ClusterSize {
        hosts: 12,
        jobs: 40,
        pods: 2,
        has_budgets: true,
        has_constraints: false,
    };
    let restricted = ClusterSize {
        has_constraints: true,
        ..many_nodes
    };
    for size in [SMALL, RESTRICTED, many_nodes, restricted] {
        for_each_decision(size, |town, built, job, outcome| {
            let traced = built.decide_with(town, job, &mut GangTrace::on()).outcome;
            prop_assert_eq!(outcome, traced, "{:#?}", town);
            Ok(())
        });
    }
}

#[test]
fn victims_have_lower_priority_and_groups_stay_whole() {
    for_each_small_decision(|town, built, job, outcome| {
        let GangOutcome::Preempt(plan) = outcome else {
            return Ok(());
        };
        let compatibility = built.cluster.options().compatibility;
        let gone = victim_pods(built, &plan);
        for (victim, pod) in &gone {
            let other = &town.jobs[*victim];
            let priority = match compatibility {
                SchedulerCompatibility::Lockkeeper => other.preemption_priority,
                SchedulerCompatibility::KubeScheduler => other.priority,
            };
            prop_assert!(priority < town.jobs[job].priority);
            prop_assert!(priority <= plan.max_priority);
            prop_assert!(other.pods[*pod].host.is_some());
            if other.mode == Some(DisruptionMode::PodGroup) {
                let whole = (0..other.pods.len()).filter(|it| other.pods[*it].host.is_some());
                prop_assert!(whole.into_iter().all(|it| gone.contains(&(*victim, it))));
            }
        }
        Ok(())
    });
}

#[test]
fn every_victim_is_necessary() {
    for_each_small_decision(|town, built, job, outcome| {
        let GangOutcome::Preempt(plan) = outcome else {
            return Ok(());
        };
        // kube-scheduler tries each unit once, though a unit that stays may give the pod an affinity that it lacked before.
        let compatibility = built.cluster.options().compatibility;
        let is_tried_once = compatibility == SchedulerCompatibility::KubeScheduler;
        if is_tried_once && !town.jobs[job].constraints.is_order_irrelevant() {
            return Ok(());
        }
        let seats = built.placements(&plan.placement);
        for spared in &plan.victims {
            let others = plan.victims.iter().filter(|it| *it != spared);
            let gone = others.flat_map(|it| built.pods_of(*it)).collect();
            // For a single pod the domain is one node: units on other nodes are not considered.
            prop_assert!(
                !fits(town, &gone, &seats),
                "{:?} is not a necessary victim in {:#?}",
                spared,
                town
            );
        }
        Ok(())
    });
}

#[test]
fn decision_is_deterministic_and_order_independent() {
    let tapes = (cluster_tapes(), any::<u64>(), any::<bool>());
    check(CASES, &tapes, |(tape, seed, has_constraints)| {
        let size = if has_constraints { RESTRICTED } else { SMALL };
        let town = ModelCluster::random(&mut Choices::new(&tape), size);
        let mut order: Vec<usize> = (0..town.jobs.len()).collect();
        let mut seed = seed | 1;
        for at in (1..order.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(at, usize::try_from(seed >> 33).unwrap() % (at + 1));
        }
        let built = town.build(SchedulerCompatibility::Lockkeeper);
        let other = town.build_in_order(SchedulerCompatibility::Lockkeeper, &order);
        for job in town.waiting() {
            let outcome = built.decide(&town, job).outcome;
            prop_assert_eq!(&outcome, &built.decide(&town, job).outcome);
            let again = other.decide(&town, job).outcome;
            prop_assert_eq!(summary(&built, &outcome), summary(&other, &again));
        }
        Ok(())
    });
}

/// The parts of a decision that do not depend on ids.
pub fn summary(built: &BuiltCluster, outcome: &GangOutcome) -> String {
    match outcome {
        GangOutcome::Fits { placement } => format!("fits {:?}", built.placements(placement)),
        GangOutcome::Preempt(plan) => {
            let victims: Vec<_> = plan.victims.iter().map(|it| built.pods_of(*it)).collect();
            let seats = built.placements(&plan.placement);
            format!("preempts {seats:?} {victims:?} {:?}", plan.score)
        }
        GangOutcome::Infeasible { .. } => "infeasible".to_owned(),
        outcome => format!("{outcome:?}"),
    }
}

/// The preemptor waits while its victims terminate, fits once they are gone, and preempts no further unit.
#[test]
fn plan_is_sufficient_while_and_after_victims_leave() {
    for_each_small_decision(|town, built, job, outcome| {
        let GangOutcome::Preempt(plan) = outcome else {
            return Ok(());
        };
        if plan.victims.is_empty() {
            return Ok(());
        }
        let compatibility = built.cluster.options().compatibility;
        let mut town = town.clone();
        for ((job, pod), host) in built.placements(&plan.placement) {
            town.jobs[job].pods[pod].nominated = Some(host);
        }
        let gone = victim_pods(built, &plan);
        if gone
            .iter()
            .all(|(it, _)| is_whole_gang_removed(&town, &gone, *it))
        {
            let mut going = town.clone();
            for (victim, _) in &gone {
                going.jobs[*victim].is_terminating = true;
            }
            let again = going.build(compatibility).decide(&going, job).outcome;
            let waits = matches!(
                again,
                GangOutcome::AwaitingVictims { .. } | GangOutcome::Ineligible(_)
            );
            // Terminating pods do not count for topology spread, so the preemptor may fit already.
            let fits_already = match &again {
                GangOutcome::Fits { placement } => {
                    let has_spread = !town.jobs[job].constraints.spread.is_empty();
                    let built = going.build(compatibility);
                    has_spread && fits(&going, &BTreeSet::new(), &built.placements(placement))
                }
                _ => false,
            };
            // kube-scheduler looks for terminating pods on the nominated nodes only.
            let hosts: Vec<usize> = built
                .placements(&plan.placement)
                .iter()
                .map(|it| it.1)
                .collect();
            let is_elsewhere = |(job, pod): &(usize, usize)| {
                let host = going.jobs[*job].pods[*pod].host;
                host.is_some_and(|it| !hosts.contains(&it))
            };
            let is_ignored = compatibility == SchedulerCompatibility::KubeScheduler
                && gone.iter().all(is_elsewhere);
            prop_assert!(
                waits || fits_already || is_ignored,
                "{:?} with terminating victims, in {:#?}",
                again,
                going
            );
        }
        for (victim, pod) in &gone {
            town.jobs[*victim].pods[*pod].host = Some(usize::MAX);
        }
        for other in &mut town.jobs {
            other.pods.retain(|it| it.host != Some(usize::MAX));
        }
        if compatibility == SchedulerCompatibility::Lockkeeper {
            let after = town.build(compatibility).decide(&town, job).outcome;
            prop_assert!(
                matches!(after, GangOutcome::Fits { .. }),
                "{:?} after, of {:#?}",
                after,
                town
            );
        }
        Ok(())
    });
}

fn is_whole_gang_removed(town: &ModelCluster, gone: &BTreeSet<(usize, usize)>, job: usize) -> bool {
    let pods = town.jobs[job].pods.iter().enumerate();
    pods.filter(|(_, it)| it.host.is_some())
        .all(|(pod, _)| gone.contains(&(job, pod)))
}

/// On one node, and with victims of a single priority, both algorithms make the same decision.
#[test]
fn both_algorithms_agree_on_one_node_with_equal_priorities() {
    let one = ClusterSize { hosts: 1, ..SMALL };
    let mut found = 0;
    let found = std::cell::RefCell::new(&mut found);
    check(CASES, &cluster_tapes(), |tape| {
        let mut town = ModelCluster::random(&mut Choices::new(&tape), one);
        let waiting = town.waiting();
        for (at, job) in town.jobs.iter_mut().enumerate() {
            job.priority = if waiting.contains(&at) { 5 } else { 1 };
            job.preemption_priority = job.priority;
        }
        let town = town;
        let both = BOTH.map(|it| town.build(it));
        for job in waiting {
            let victims = both.each_ref().map(|built| {
                let pods = built.waiting(&town, job);
                let run = built
                    .cluster
                    .dry_run(&built.request(job, &pods), &mut GangTrace::off());
                let plan = run.candidates.first();
                plan.map(|plan| {
                    plan.victims
                        .iter()
                        .map(|it| built.pods_of(*it))
                        .collect::<Vec<_>>()
                })
            });
            let [ours, theirs] = victims.map(Option::unwrap_or_default);
            **found.borrow_mut() += usize::from(!ours.is_empty());
            prop_assert_eq!(ours, theirs, "{:#?}", town);
        }
        Ok(())
    });
    assert!(crate::model::choices::cases_from_env().is_some() || **found.borrow() > 100);
}

/// Decisions pod by pod are all or nothing as well.
#[test]
fn pod_by_pod_never_preempts_for_partial_gang() {
    for_each_small_decision(|town, built, job, _| {
        if town.jobs[job].mode.is_none() {
            return Ok(());
        }
        let pods = built.waiting(town, job);
        let ask = built.request(job, &pods);
        let outcome = built.cluster.decide_pod_by_pod(&ask, &mut GangTrace::off());
        check_all_or_nothing_and_fits(town, built, job, &outcome)
    });
}
