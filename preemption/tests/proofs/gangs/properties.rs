//! What every decision keeps to.

use super::town::{SMALL, Size, Told, Town, is_within};
use crate::model::dice::{Dice, WORLD_BYTES, check};
use lockkeeper_preemption::gang::{Compatibility, DisruptionMode, Outcome, Plan, Trace};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeSet;

const CASES: u32 = 2_000;
const BOTH: [Compatibility; 2] = [Compatibility::Lockkeeper, Compatibility::KubeScheduler];

pub fn town_tapes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), WORLD_BYTES)
}

/// Every job that waits is decided on.
fn each(size: Size, test: impl Fn(&Town, &Told, usize, Outcome) -> TestCaseResult) {
    check(CASES, &town_tapes(), |tape| {
        let town = Town::roll(&mut Dice::of(&tape), size);
        for compatibility in BOTH {
            let told = town.told(compatibility);
            for job in town.waiting() {
                let outcome = told.decide(&town, job).outcome;
                test(&town, &told, job, outcome)?;
            }
        }
        Ok(())
    });
}

/// Whether the pods of a placement have room when these are gone, where they may go.
pub fn fits(
    town: &Town,
    gone: &BTreeSet<(usize, usize)>,
    seats: &[((usize, usize), usize)],
) -> bool {
    let mut after = town.clone();
    for (job, pod) in gone {
        after.jobs[*job].pods[*pod].host = None;
    }
    seats.iter().all(|((job, pod), host)| {
        let asks = town.jobs[*job].pods[*pod].asks;
        let is_free = is_within(asks, after.free(*host));
        after.jobs[*job].pods[*pod].host = Some(*host);
        is_free && town.admits(*host, &town.jobs[*job])
    })
}

fn gone(told: &Told, plan: &Plan) -> BTreeSet<(usize, usize)> {
    plan.victims
        .iter()
        .flat_map(|it| told.pods_of(*it))
        .collect()
}

/// Whoever has a place has room there when the victims have gone, and it is enough for the whole gang.
fn is_whole_and_fits(town: &Town, told: &Told, job: usize, outcome: &Outcome) -> TestCaseResult {
    let (placement, gone) = match outcome {
        Outcome::Fits { placement } => (placement, BTreeSet::new()),
        Outcome::Preempt(plan) => (&plan.placement, gone(told, plan)),
        _ => return Ok(()),
    };
    let seats = told.seats(placement);
    prop_assert!(fits(town, &gone, &seats), "{:?} of {:#?}", outcome, town);
    let pods = &town.jobs[job].pods;
    let running = pods.iter().filter(|it| it.host.is_some()).count();
    prop_assert!(seats.len() + running >= town.jobs[job].count_min.min(pods.len()));
    Ok(())
}

#[test]
fn the_preemptor_fits_when_its_victims_have_gone_and_all_of_it() {
    each(SMALL, |town, told, job, outcome| {
        is_whole_and_fits(town, told, job, &outcome)
    });
}

#[test]
fn nobody_of_an_equal_or_higher_priority_goes_and_no_group_in_part() {
    each(SMALL, |town, told, job, outcome| {
        let Outcome::Preempt(plan) = outcome else {
            return Ok(());
        };
        let compatibility = told.world.options().compatibility;
        let gone = gone(told, &plan);
        for (victim, pod) in &gone {
            let other = &town.jobs[*victim];
            let priority = match compatibility {
                Compatibility::Lockkeeper => other.preemption_priority,
                Compatibility::KubeScheduler => other.priority,
            };
            prop_assert!(priority < town.jobs[job].priority);
            prop_assert!(priority <= plan.most);
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
fn no_victim_could_have_stayed() {
    each(SMALL, |town, told, _, outcome| {
        let Outcome::Preempt(plan) = outcome else {
            return Ok(());
        };
        let seats = told.seats(&plan.placement);
        for spared in &plan.victims {
            let others = plan.victims.iter().filter(|it| *it != spared);
            let gone = others.flat_map(|it| told.pods_of(*it)).collect();
            // A pod is on one node with one domain: elsewhere it is not asked.
            prop_assert!(
                !fits(town, &gone, &seats),
                "{:?} could stay in {:#?}",
                spared,
                town
            );
        }
        Ok(())
    });
}

#[test]
fn asked_again_it_says_the_same_and_in_whatever_order_it_was_told() {
    check(CASES, &(town_tapes(), any::<u64>()), |(tape, seed)| {
        let town = Town::roll(&mut Dice::of(&tape), SMALL);
        let mut order: Vec<usize> = (0..town.jobs.len()).collect();
        let mut seed = seed | 1;
        for at in (1..order.len()).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(at, usize::try_from(seed >> 33).unwrap() % (at + 1));
        }
        let told = town.told(Compatibility::Lockkeeper);
        let other = town.told_in(Compatibility::Lockkeeper, &order);
        for job in town.waiting() {
            let outcome = told.decide(&town, job).outcome;
            prop_assert_eq!(&outcome, &told.decide(&town, job).outcome);
            let again = other.decide(&town, job).outcome;
            prop_assert_eq!(summary(&told, &outcome), summary(&other, &again));
        }
        Ok(())
    });
}

/// What does not depend on numbers.
pub fn summary(told: &Told, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Fits { placement } => format!("fits {:?}", told.seats(placement)),
        Outcome::Preempt(plan) => {
            let victims: Vec<_> = plan.victims.iter().map(|it| told.pods_of(*it)).collect();
            let seats = told.seats(&plan.placement);
            format!("preempts {seats:?} {victims:?} {:?}", plan.score)
        }
        Outcome::Infeasible { .. } => "infeasible".to_owned(),
        outcome => format!("{outcome:?}"),
    }
}

/// While its victims go it waits, when they have gone it fits, and nobody else ever has to go.
#[test]
fn what_was_planned_is_enough() {
    each(SMALL, |town, told, job, outcome| {
        let Outcome::Preempt(plan) = outcome else {
            return Ok(());
        };
        if plan.victims.is_empty() {
            return Ok(());
        }
        let compatibility = told.world.options().compatibility;
        let mut town = town.clone();
        for ((job, pod), host) in told.seats(&plan.placement) {
            town.jobs[job].pods[pod].nominated = Some(host);
        }
        let gone = gone(told, &plan);
        if gone.iter().all(|(it, _)| is_whole(&town, &gone, *it)) {
            let mut going = town.clone();
            for (victim, _) in &gone {
                going.jobs[*victim].is_going = true;
            }
            let again = going.told(compatibility).decide(&going, job).outcome;
            let waits = matches!(again, Outcome::Waits { .. } | Outcome::Refused(_));
            prop_assert!(waits, "{:?} while they go, of {:#?}", again, going);
        }
        for (victim, pod) in &gone {
            town.jobs[*victim].pods[*pod].host = Some(usize::MAX);
        }
        for other in &mut town.jobs {
            other.pods.retain(|it| it.host != Some(usize::MAX));
        }
        if compatibility == Compatibility::Lockkeeper {
            let after = town.told(compatibility).decide(&town, job).outcome;
            prop_assert!(
                matches!(after, Outcome::Fits { .. }),
                "{:?} after, of {:#?}",
                after,
                town
            );
        }
        Ok(())
    });
}

fn is_whole(town: &Town, gone: &BTreeSet<(usize, usize)>, job: usize) -> bool {
    let pods = town.jobs[job].pods.iter().enumerate();
    pods.filter(|(_, it)| it.host.is_some())
        .all(|(pod, _)| gone.contains(&(job, pod)))
}

/// On one node, and where all victims are of one priority, there is nothing that the two algorithms differ in.
#[test]
fn on_one_node_with_equal_priorities_both_take_the_same() {
    let one = Size { hosts: 1, ..SMALL };
    let mut found = 0;
    let found = std::cell::RefCell::new(&mut found);
    check(CASES, &town_tapes(), |tape| {
        let mut town = Town::roll(&mut Dice::of(&tape), one);
        let waiting = town.waiting();
        for (at, job) in town.jobs.iter_mut().enumerate() {
            job.priority = if waiting.contains(&at) { 5 } else { 1 };
            job.preemption_priority = job.priority;
        }
        let town = town;
        let both = BOTH.map(|it| town.told(it));
        for job in waiting {
            let victims = both.each_ref().map(|told| {
                let pods = told.waiting(&town, job);
                let run = told.world.dry_run(&told.ask(job, &pods), &mut Trace::off());
                let plan = run.candidates.first();
                plan.map(|it| {
                    it.victims
                        .iter()
                        .map(|it| told.pods_of(*it))
                        .collect::<Vec<_>>()
                })
            });
            let [ours, theirs] = victims.map(Option::unwrap_or_default);
            **found.borrow_mut() += usize::from(!ours.is_empty());
            prop_assert_eq!(ours, theirs, "{:#?}", town);
        }
        Ok(())
    });
    assert!(crate::model::dice::asked_cases().is_some() || **found.borrow() > 100);
}

/// Pod by pod it is all or nothing as well.
#[test]
fn pod_by_pod_nobody_goes_for_a_part_of_a_gang() {
    each(SMALL, |town, told, job, _| {
        if town.jobs[job].mode.is_none() {
            return Ok(());
        }
        let pods = told.waiting(town, job);
        let ask = told.ask(job, &pods);
        let outcome = told.world.decide_pod_by_pod(&ask, &mut Trace::off());
        is_whole_and_fits(town, told, job, &outcome)
    });
}
