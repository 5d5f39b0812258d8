//! The limits of preemption that users ask for, each at its border.

use crate::model::live::Live;
use crate::model::told::Gone;
use crate::model::world::{Group, Held, Limits, Pods, Queue, Workload, World};
use lockkeeper_preemption::{
    FlavorFungibility, Preemption, PreemptionLimits, QueueingStrategy, Reason, ReclaimWithinCohort,
    Spared, Step, Trace, WithinClusterQueue,
};
use std::collections::BTreeMap;

/// When the question is asked.
const NOW_S: i64 = 1000;

fn queue(name: &str, nominal: i64, preemption: Preemption) -> Queue {
    let limits = Limits {
        nominal,
        ..Limits::default()
    };
    Queue {
        name: name.to_owned(),
        cohort: Some("c0".to_owned()),
        groups: vec![Group {
            resources: vec![1],
            flavors: vec![(0, vec![limits])],
        }],
        preemption,
        fungibility: FlavorFungibility::default(),
        strategy: QueueingStrategy::BestEffortFifo,
        weight: 1.0,
        is_active: true,
    }
}

fn workload(name: &str, queue: &str, priority: i32, reserved_at_s: Option<i64>) -> Workload {
    Workload {
        name: name.to_owned(),
        uid: name.to_owned(),
        queue: queue.to_owned(),
        priority,
        order_time: 5,
        pods: vec![Pods {
            count: 1,
            least: None,
            requests: vec![(1, 1)],
            ineligible: Vec::new(),
        }],
        is_in_scope: true,
        held: reserved_at_s.map(|reserved_at_s| Held {
            usage: BTreeMap::from([((0, 1), 1)]),
            reserved_at_s,
            is_evicted: false,
        }),
    }
}

fn takes_equals(limits: PreemptionLimits) -> Preemption {
    Preemption {
        within_cluster_queue: WithinClusterQueue::LowerOrNewerEqualPriority,
        reclaim_within_cohort: ReclaimWithinCohort::Any,
        limits,
        ..Preemption::default()
    }
}

/// `asks` (priority 5) wants what `runs` has, which is in `runs_in`, of `q0` and `q1`. Without limits
/// it gets it.
fn victims(
    runs_in: &str,
    priority: i32,
    asks: PreemptionLimits,
    runs: PreemptionLimits,
) -> (Vec<Gone>, Trace) {
    // Newer than who asks.
    victims_since(9, runs_in, priority, asks, runs)
}

fn victims_since(
    order_time: i64,
    runs_in: &str,
    priority: i32,
    asks: PreemptionLimits,
    runs: PreemptionLimits,
) -> (Vec<Gone>, Trace) {
    let mut world = World::default();
    let own = if runs_in == "q0" { asks } else { runs };
    for (name, nominal, limits) in [("q0", 1, asks), ("q1", 0, own)] {
        let queue = queue(name, nominal, takes_equals(limits));
        world.queues.insert(name.to_owned(), queue);
    }
    let mut runs = workload("runs", runs_in, priority, Some(NOW_S - 100));
    runs.order_time = order_time;
    world.workloads.insert("runs".to_owned(), runs);
    let asks = workload("asks", "q0", 5, None);
    world.workloads.insert("asks".to_owned(), asks);
    let mut live = Live::of(&world);
    live.state.set_now(NOW_S);
    let (nominated, trace) = live.nominate("asks", Trace::on());
    (nominated.victims, trace)
}

fn gone(reason: Reason) -> Vec<Gone> {
    vec![("runs".to_owned(), reason)]
}

#[test]
fn without_limits_it_is_taken() {
    let none = PreemptionLimits::default();
    let own = gone(Reason::InClusterQueue);
    assert_eq!(victims("q0", 5, none, none).0, own);
    assert_eq!(victims("q0", 4, none, none).0, own);
    assert_eq!(victims("q0", 6, none, none).0, []);
    let other = gone(Reason::InCohortReclamation);
    assert_eq!(victims("q1", 9, none, none).0, other);
}

#[test]
fn a_threshold_spares_those_above_it() {
    let none = PreemptionLimits::default();
    for (priority, most, is_taken) in [
        (5, 5, true),
        (5, 4, false),
        (4, 4, true),
        (4, 3, false),
        (4, i32::MAX, true),
        (5, i32::MAX, true),
    ] {
        let limits = PreemptionLimits {
            within_threshold_max: Some(most),
            ..none
        };
        let taken = !victims("q0", priority, limits, none).0.is_empty();
        assert_eq!(taken, is_taken, "{priority} within, at most {most}");
        // Above its priority, a threshold does not make older equals less safe.
        let older = victims_since(1, "q0", 5, limits, none).0;
        assert_eq!(older, [], "{most}");
    }
    for (priority, most, is_taken) in [(7, 7, true), (7, 6, false), (7, i32::MAX, true)] {
        let limits = PreemptionLimits {
            reclaim_threshold_max: Some(most),
            ..none
        };
        let taken = !victims("q1", priority, limits, none).0.is_empty();
        assert_eq!(taken, is_taken, "{priority} beyond, at most {most}");
        // It says nothing of the own queue.
        assert!(!victims("q0", 5, limits, none).0.is_empty());
    }
}

/// It has run for 100 s.
#[test]
fn who_runs_for_too_short_is_spared() {
    let none = PreemptionLimits::default();
    for (least_s, is_taken) in [(100, true), (101, false), (0, true)] {
        let within = PreemptionLimits {
            min_run_within_s: Some(least_s),
            ..none
        };
        let taken = !victims("q0", 4, within, none).0.is_empty();
        assert_eq!(taken, is_taken, "within, {least_s}");
        let beyond = PreemptionLimits {
            min_run_beyond_s: Some(least_s),
            ..none
        };
        let taken = !victims("q1", 4, none, beyond).0.is_empty();
        assert_eq!(taken, is_taken, "beyond, {least_s}");
        // Each says nothing of the other, and the limits are those of the victim's queue.
        assert!(!victims("q1", 4, beyond, within).0.is_empty());
        assert!(!victims("q0", 4, beyond, none).0.is_empty());
    }
}

/// At a bound, before anybody is looked at.
#[test]
fn a_search_in_vain_is_told() {
    let none = PreemptionLimits::default();
    for (priority, is_in_vain) in [(6, true), (5, false), (4, false)] {
        let (_, trace) = victims("q0", priority, none, none);
        let is_told = trace.steps().contains(&Step::InVain);
        assert_eq!(is_told, is_in_vain, "{priority}: {trace:?}");
    }
}

#[test]
fn who_is_spared_is_told() {
    let none = PreemptionLimits::default();
    let limits = PreemptionLimits {
        min_run_within_s: Some(101),
        ..none
    };
    let (_, trace) = victims("q0", 4, limits, none);
    let spared = Spared::RunsTooShort {
        for_s: 100,
        least_s: 101,
    };
    let mut steps = trace.steps().iter();
    let is_told = steps.any(|it| matches!(it, Step::Spared { why, .. } if *why == spared));
    assert!(is_told, "{trace:?}");
}

#[test]
fn reasons_are_told_in_the_words_of_kueue() {
    let words = [
        (Reason::InClusterQueue, "InClusterQueue"),
        (Reason::InCohortReclamation, "InCohortReclamation"),
        (
            Reason::InCohortReclaimWhileBorrowing,
            "InCohortReclaimWhileBorrowing",
        ),
        (Reason::InCohortFairSharing, "InCohortFairSharing"),
    ];
    for (reason, word) in words {
        assert_eq!(reason.as_str(), word);
    }
}
