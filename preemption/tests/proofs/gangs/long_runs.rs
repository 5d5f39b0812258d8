//! Long runs: preempted jobs become pending again, and there are no preemption loops.

use super::clusters::{ModelCluster, ModelJob, SMALL};
use super::properties::cluster_tapes;
use crate::model::choices::{Choices, check};
use lockkeeper_preemption::gang::{DisruptionMode, GangOutcome, SchedulerCompatibility};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeSet;

const RUNS: u32 = 600;
const ROUNDS: usize = 60;

/// Decides on the pending jobs, one after another, and executes each plan immediately. Preempted jobs become pending
/// again. Returns pairs of preemptor and victim, in order; the run ends when nothing changes any more.
fn run(town: &mut ModelCluster, rounds: usize) -> (Vec<(usize, usize)>, bool) {
    let mut preempted = Vec::new();
    for _ in 0..rounds {
        let mut is_quiet = true;
        for job in town.waiting() {
            if town.jobs[job].pods.iter().all(|it| it.host.is_some()) {
                continue;
            }
            let built = town.build(SchedulerCompatibility::Lockkeeper);
            let (placement, victims) = match built.decide(town, job).outcome {
                GangOutcome::Fits { placement } => (placement, Vec::new()),
                GangOutcome::Preempt(plan) => (plan.placement, plan.victims),
                _ => continue,
            };
            is_quiet = false;
            for (victim, pod) in victims.iter().flat_map(|it| built.pods_of(*it)) {
                town.jobs[victim].pods[pod].host = None;
                preempted.push((job, victim));
            }
            for ((job, pod), host) in built.placements(&placement) {
                town.jobs[job].pods[pod].host = Some(host);
            }
        }
        if is_quiet {
            return (preempted, true);
        }
    }
    (preempted, false)
}

fn check_no_mutual_preemption(preempted: &[(usize, usize)]) -> TestCaseResult {
    let pairs: BTreeSet<(usize, usize)> = preempted.iter().copied().collect();
    for (a, b) in &pairs {
        prop_assert!(
            !pairs.contains(&(*b, *a)),
            "{} and {} preempt each other",
            a,
            b
        );
    }
    Ok(())
}

#[test]
fn long_runs_end_without_mutual_preemption() {
    check(RUNS, &cluster_tapes(), |tape| {
        let mut town = ModelCluster::random(&mut Choices::new(&tape), SMALL);
        let (preempted, is_at_rest) = run(&mut town, ROUNDS);
        check_no_mutual_preemption(&preempted)?;
        prop_assert!(
            is_at_rest,
            "after {} preemptions: {:#?}",
            preempted.len(),
            town
        );
        Ok(())
    });
}

/// Jobs with these scheduling and preemption priorities, and room for one of them.
fn competing_jobs(priorities: &[(i32, i32)]) -> ModelCluster {
    let job = |(priority, preemption_priority): &(i32, i32)| ModelJob {
        priority: *priority,
        preemption_priority: *preemption_priority,
        ..ModelJob::gang(DisruptionMode::PodGroup, 1, None)
    };
    ModelCluster::with_jobs(priorities.iter().map(job).collect())
}

/// Three jobs with every combination of priorities with scheduling ≤ preemption, and room for one of them.
#[test]
fn all_priority_pairs_end_without_preemption_loop() {
    let pairs: Vec<(i32, i32)> = (0..3)
        .flat_map(|low| (low..3).map(move |high| (low, high)))
        .collect();
    let mut preemptions = 0;
    for a in &pairs {
        for b in &pairs {
            for c in &pairs {
                let (preempted, is_at_rest) = run(&mut competing_jobs(&[*a, *b, *c]), 10);
                assert!(is_at_rest, "{a:?} {b:?} {c:?}");
                check_no_mutual_preemption(&preempted).unwrap();
                preemptions += preempted.len();
            }
        }
    }
    assert!(preemptions > 0);
}

/// The check above can fail: with a preemption priority below the scheduling priority, two jobs preempt each other
/// forever.
#[test]
fn preemption_priority_below_scheduling_priority_loops() {
    let (preempted, is_at_rest) = run(&mut competing_jobs(&[(1, 0), (1, 0)]), 10);
    assert!(!is_at_rest && check_no_mutual_preemption(&preempted).is_err());
}
