//! The state depends only on the existing objects, not on earlier events.

use super::clusters::{BuiltCluster, ModelCluster, ModelJob, SMALL, set_budget, set_host};
use super::properties::{cluster_tapes, summary};
use crate::model::choices::{Choices, check};
use lockkeeper_preemption::gang::{DisruptionMode, SchedulerCompatibility, release_unused};
use lockkeeper_preemption::placement::UsedIds;
use proptest::collection::vec;
use proptest::prelude::*;

const CASES: u32 = 1_500;
const EVENTS: usize = 12;

/// A change, most of which is reverted at the end.
fn apply_random_event(built: &mut BuiltCluster, town: &ModelCluster, dice: &mut Choices<'_>) {
    let job = dice.below(town.jobs.len());
    match dice.below(7) {
        0 => {
            for pod in built.pods[job].clone() {
                built.cluster.remove_pod(pod);
            }
        }
        1 => {
            let mut other = town.jobs[job].clone();
            other.priority = i32::try_from(dice.below(5)).unwrap();
            other.preemption_priority = other.priority;
            other.mode = other.mode.map(|_| DisruptionMode::Pod);
            other.label = Some(dice.below(2));
            built.set_job(job, &other);
        }
        2 => {
            if let Some(group) = built.groups[job].take() {
                built.cluster.remove_group(group);
            }
        }
        3 => {
            let budget = set_budget(&mut built.cluster, dice.below(3), dice.below(2), 0);
            if dice.one_in(2) {
                built.cluster.remove_budget(budget);
            }
        }
        4 => {
            // A budget that is added again after a release has another place in the order.
            for (at, (label, allowed)) in town.budgets.iter().enumerate() {
                set_budget(&mut built.cluster, at, *label, *allowed);
            }
            let mut used = UsedIds::default();
            for host in &built.hosts {
                used.mark_host(*host);
            }
            release_unused(&mut built.cluster, used);
        }
        5 => built
            .cluster
            .remove_host(built.hosts[dice.below(town.hosts.len())]),
        _ => {
            let mut moved = town.jobs[job].clone();
            let host = dice.below(town.hosts.len());
            moved.pods.iter_mut().for_each(|it| it.host = Some(host));
            built.set_job(job, &moved);
        }
    }
}

#[test]
fn decision_depends_on_state_not_event_history() {
    let events = vec(any::<u8>(), EVENTS * 6);
    check(CASES, &(cluster_tapes(), events), |(tape, events)| {
        let town = ModelCluster::random(&mut Choices::new(&tape), SMALL);
        let fresh = town.build(SchedulerCompatibility::Lockkeeper);
        let mut built = town.build(SchedulerCompatibility::Lockkeeper);
        let mut dice = Choices::new(&events);
        for _ in 0..EVENTS {
            apply_random_event(&mut built, &town, &mut dice);
        }
        for (at, host) in town.hosts.iter().enumerate() {
            set_host(&mut built.cluster, at, host);
        }
        for at in 0..3 {
            if let Some((label, allowed)) = town.budgets.get(at) {
                set_budget(&mut built.cluster, at, *label, *allowed);
                continue;
            }
            let budget = set_budget(&mut built.cluster, at, 0, 0);
            built.cluster.remove_budget(budget);
        }
        for (at, job) in town.jobs.iter().enumerate() {
            built.set_job(at, job);
        }
        prop_assert_eq!(
            built.cluster.units().iter().count(),
            fresh.cluster.units().iter().count()
        );
        for job in town.waiting() {
            let now = built.decide(&town, job).outcome;
            let expected = fresh.decide(&town, job).outcome;
            prop_assert_eq!(
                summary(&built, &now),
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
fn leader_worker_set_unit_count_follows_disruption_mode() {
    for (mode, units) in [(DisruptionMode::PodGroup, 8), (DisruptionMode::Pod, 40)] {
        let replica = ModelJob::gang(mode, 5, Some(0));
        let town = ModelCluster::with_jobs(vec![replica; 8]);
        let built = town.build(SchedulerCompatibility::Lockkeeper);
        assert_eq!(built.cluster.units().iter().count(), units);
    }
}
