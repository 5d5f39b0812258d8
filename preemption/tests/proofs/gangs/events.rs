//! Whatever happened before, only what is there now counts.

use super::properties::{summary, town_tapes};
use super::town::{Job, SMALL, Told, Town, set_budget, set_host};
use crate::model::dice::{Dice, check};
use lockkeeper_preemption::gang::{Compatibility, DisruptionMode};
use proptest::collection::vec;
use proptest::prelude::*;

const CASES: u32 = 1_500;
const EVENTS: usize = 12;

/// Something changes; most of it is told back at the end.
fn change(told: &mut Told, town: &Town, dice: &mut Dice<'_>) {
    let job = dice.below(town.jobs.len());
    match dice.below(6) {
        0 => {
            for pod in told.pods[job].clone() {
                told.world.remove_pod(pod);
            }
        }
        1 => {
            let mut other = town.jobs[job].clone();
            other.priority = i32::try_from(dice.below(5)).unwrap();
            other.preemption_priority = other.priority;
            other.mode = other.mode.map(|_| DisruptionMode::Pod);
            other.label = Some(dice.below(2));
            told.add(job, &other);
        }
        2 => {
            if let Some(group) = told.groups[job] {
                told.world.remove_group(group);
            }
        }
        3 => {
            let budget = set_budget(&mut told.world, dice.below(3), dice.below(2), 0);
            if dice.one_in(2) {
                told.world.remove_budget(budget);
            }
        }
        4 => told
            .world
            .remove_host(told.hosts[dice.below(town.hosts.len())]),
        _ => {
            let mut moved = town.jobs[job].clone();
            let host = dice.below(town.hosts.len());
            moved.pods.iter_mut().for_each(|it| it.host = Some(host));
            told.add(job, &moved);
        }
    }
}

#[test]
fn what_happened_before_does_not_matter() {
    let events = vec(any::<u8>(), EVENTS * 6);
    check(CASES, &(town_tapes(), events), |(tape, events)| {
        let town = Town::roll(&mut Dice::of(&tape), SMALL);
        let fresh = town.told(Compatibility::Lockkeeper);
        let mut told = town.told(Compatibility::Lockkeeper);
        let mut dice = Dice::of(&events);
        for _ in 0..EVENTS {
            change(&mut told, &town, &mut dice);
        }
        for (at, host) in town.hosts.iter().enumerate() {
            set_host(&mut told.world, at, host);
        }
        for at in 0..3 {
            if let Some((label, allowed)) = town.budgets.get(at) {
                set_budget(&mut told.world, at, *label, *allowed);
                continue;
            }
            let budget = set_budget(&mut told.world, at, 0, 0);
            told.world.remove_budget(budget);
        }
        for (at, job) in town.jobs.iter().enumerate() {
            told.add(at, job);
        }
        prop_assert_eq!(told.world.units().count(), fresh.world.units().count());
        for job in town.waiting() {
            let now = told.decide(&town, job).outcome;
            let expected = fresh.decide(&town, job).outcome;
            prop_assert_eq!(
                summary(&told, &now),
                summary(&fresh, &expected),
                "job{} of {:#?}",
                job,
                town
            );
        }
        Ok(())
    });
}

/// A LeaderWorkerSet of eight replicas of a leader and four workers.
#[test]
fn a_group_of_eight_replicas_is_eight_units_or_forty() {
    for (mode, units) in [(DisruptionMode::PodGroup, 8), (DisruptionMode::Pod, 40)] {
        let replica = Job::of(mode, 5, Some(0));
        let town = Town::of(vec![replica; 8]);
        let told = town.told(Compatibility::Lockkeeper);
        assert_eq!(told.world.units().count(), units);
    }
}
