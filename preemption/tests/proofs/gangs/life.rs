//! Long runs: jobs come back when they were preempted, and nobody goes round in circles.

use super::properties::town_tapes;
use super::town::{Job, SMALL, Town};
use crate::model::dice::{Dice, check};
use lockkeeper_preemption::gang::{Compatibility, DisruptionMode, Outcome};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeSet;

const RUNS: u32 = 600;
const ROUNDS: usize = 60;

/// Decides on the jobs that wait, one after the other, and carries it out at once. Whoever was preempted waits again.
/// Returns who preempted whom, in order; the run ends when nothing happens any more.
fn run(town: &mut Town, rounds: usize) -> (Vec<(usize, usize)>, bool) {
    let mut preempted = Vec::new();
    for _ in 0..rounds {
        let mut is_quiet = true;
        for job in town.waiting() {
            if town.jobs[job].pods.iter().all(|it| it.host.is_some()) {
                continue;
            }
            let told = town.told(Compatibility::Lockkeeper);
            let (placement, victims) = match told.decide(town, job).outcome {
                Outcome::Fits { placement } => (placement, Vec::new()),
                Outcome::Preempt(plan) => (plan.placement, plan.victims),
                _ => continue,
            };
            is_quiet = false;
            for (victim, pod) in victims.iter().flat_map(|it| told.pods_of(*it)) {
                town.jobs[victim].pods[pod].host = None;
                preempted.push((job, victim));
            }
            for ((job, pod), host) in told.seats(&placement) {
                town.jobs[job].pods[pod].host = Some(host);
            }
        }
        if is_quiet {
            return (preempted, true);
        }
    }
    (preempted, false)
}

fn nobody_in_turn(preempted: &[(usize, usize)]) -> TestCaseResult {
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
fn long_runs_come_to_rest_and_no_two_preempt_each_other() {
    check(RUNS, &town_tapes(), |tape| {
        let mut town = Town::roll(&mut Dice::of(&tape), SMALL);
        let (preempted, is_at_rest) = run(&mut town, ROUNDS);
        nobody_in_turn(&preempted)?;
        prop_assert!(
            is_at_rest,
            "after {} preemptions: {:#?}",
            preempted.len(),
            town
        );
        Ok(())
    });
}

/// Jobs with these priorities, for scheduling and for preemption, and a place for one of them.
fn rivals(priorities: &[(i32, i32)]) -> Town {
    let job = |(priority, preemption_priority): &(i32, i32)| Job {
        priority: *priority,
        preemption_priority: *preemption_priority,
        ..Job::of(DisruptionMode::PodGroup, 1, None)
    };
    Town::of(priorities.iter().map(job).collect())
}

/// Three jobs of every pair of priorities with scheduling ≤ preemption want the one place there is.
#[test]
fn of_all_priorities_none_goes_in_circles() {
    let pairs: Vec<(i32, i32)> = (0..3)
        .flat_map(|low| (low..3).map(move |high| (low, high)))
        .collect();
    let mut preemptions = 0;
    for a in &pairs {
        for b in &pairs {
            for c in &pairs {
                let (preempted, is_at_rest) = run(&mut rivals(&[*a, *b, *c]), 10);
                assert!(is_at_rest, "{a:?} {b:?} {c:?}");
                nobody_in_turn(&preempted).unwrap();
                preemptions += preempted.len();
            }
        }
    }
    assert!(preemptions > 0);
}

/// That the check above can fail: with a preemption priority below the other one, two take each other's place for ever.
#[test]
fn a_preemption_priority_below_the_scheduling_priority_goes_round() {
    let (preempted, is_at_rest) = run(&mut rivals(&[(1, 0), (1, 0)]), 10);
    assert!(!is_at_rest && nobody_in_turn(&preempted).is_err());
}
