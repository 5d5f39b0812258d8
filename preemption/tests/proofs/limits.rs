//! The preemption limits of a queue, each at its boundary.

use crate::model::cluster_model::{
    ClusterModel, Group, Limits, ModelReservation, Pods, Queue, Workload,
};
use crate::model::live::LiveState;
use crate::model::named_decisions::NamedVictim;
use lockkeeper_preemption::{
    FlavorFungibility, Preemption, PreemptionLimits, PreemptionReason, Protection,
    QueueingStrategy, ReclaimWithinCohort, Step, Trace, WithinClusterQueue,
};
use std::collections::BTreeMap;

/// The time of the nominations, in seconds.
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
        preemption_priority: priority,
        order_time: 5,
        pods: vec![Pods {
            count: 1,
            count_min: None,
            requests: vec![(1, 1)],
            ineligible: Vec::new(),
        }],
        is_in_scope: true,
        reservation: reserved_at_s.map(|reserved_at_s| ModelReservation {
            usage: BTreeMap::from([((0, 1), 1)]),
            reserved_at_s,
            is_evicted: false,
        }),
    }
}

fn preempts_equals(limits: PreemptionLimits) -> Preemption {
    Preemption {
        within_cluster_queue: WithinClusterQueue::LowerOrNewerEqualPriority,
        reclaim_within_cohort: ReclaimWithinCohort::Any,
        limits,
        ..Preemption::default()
    }
}

/// `asks` (priority 5) needs the quota of `runs`, which is in queue `runs_in` (`q0` or `q1`). Without limits it
/// preempts `runs`.
fn victims(
    runs_in: &str,
    priority: i32,
    asks: PreemptionLimits,
    runs: PreemptionLimits,
) -> (Vec<NamedVictim>, Trace) {
    // Newer than the preemptor.
    victims_since(9, runs_in, priority, asks, runs)
}

fn victims_since(
    order_time: i64,
    runs_in: &str,
    priority: i32,
    asks: PreemptionLimits,
    runs: PreemptionLimits,
) -> (Vec<NamedVictim>, Trace) {
    let mut cluster_model = ClusterModel::default();
    let own = if runs_in == "q0" { asks } else { runs };
    for (name, nominal, limits) in [("q0", 1, asks), ("q1", 0, own)] {
        let queue = queue(name, nominal, preempts_equals(limits));
        cluster_model.queues.insert(name.to_owned(), queue);
    }
    let mut runs = workload("runs", runs_in, priority, Some(NOW_S - 100));
    runs.order_time = order_time;
    cluster_model.workloads.insert("runs".to_owned(), runs);
    let asks = workload("asks", "q0", 5, None);
    cluster_model.workloads.insert("asks".to_owned(), asks);
    let mut live = LiveState::from_model(&cluster_model);
    live.state.set_now(NOW_S);
    let (nominated, trace) = live.nominate("asks", Trace::on());
    (nominated.victims, trace)
}

fn only_victim(reason: PreemptionReason) -> Vec<NamedVictim> {
    vec![("runs".to_owned(), reason)]
}

#[test]
fn search_without_limits_takes_the_candidate() {
    let none = PreemptionLimits::default();
    let own = only_victim(PreemptionReason::InClusterQueue);
    assert_eq!(victims("q0", 5, none, none).0, own);
    assert_eq!(victims("q0", 4, none, none).0, own);
    assert_eq!(victims("q0", 6, none, none).0, []);
    let other = only_victim(PreemptionReason::InCohortReclamation);
    assert_eq!(victims("q1", 9, none, none).0, other);
}

#[test]
fn threshold_protects_higher_priorities() {
    let none = PreemptionLimits::default();
    for (priority, most, expected) in [
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
        let actual = !victims("q0", priority, limits, none).0.is_empty();
        assert_eq!(actual, expected, "{priority} within, at most {most}");
        // A threshold above the preemptor's priority does not protect older workloads of equal priority.
        let older = victims_since(1, "q0", 5, limits, none).0;
        assert_eq!(older, [], "{most}");
    }
    for (priority, most, expected) in [(7, 7, true), (7, 6, false), (7, i32::MAX, true)] {
        let limits = PreemptionLimits {
            reclaim_threshold_max: Some(most),
            ..none
        };
        let actual = !victims("q1", priority, limits, none).0.is_empty();
        assert_eq!(actual, expected, "{priority} beyond, at most {most}");
        // It does not apply to the preemptor's own queue.
        assert!(!victims("q0", 5, limits, none).0.is_empty());
    }
}

/// The workload has run for 100 s.
#[test]
fn min_runtime_protects_recently_admitted_workload() {
    let none = PreemptionLimits::default();
    for (least_s, expected) in [(100, true), (101, false), (0, true)] {
        let within = PreemptionLimits {
            min_run_within_s: Some(least_s),
            ..none
        };
        let actual = !victims("q0", 4, within, none).0.is_empty();
        assert_eq!(actual, expected, "within, {least_s}");
        let beyond = PreemptionLimits {
            min_run_beyond_s: Some(least_s),
            ..none
        };
        let actual = !victims("q1", 4, none, beyond).0.is_empty();
        assert_eq!(actual, expected, "beyond, {least_s}");
        // The two limits are independent, and the limits of the victim's queue apply.
        assert!(!victims("q1", 4, beyond, within).0.is_empty());
        assert!(!victims("q0", 4, beyond, none).0.is_empty());
    }
}

/// The search ends at a bound, before it tries a candidate.
#[test]
fn trace_of_impossible_search_contains_cannot_succeed() {
    let none = PreemptionLimits::default();
    for (priority, is_in_vain) in [(6, true), (5, false), (4, false)] {
        let (_, trace) = victims("q0", priority, none, none);
        let is_recorded = trace.steps().contains(&Step::CannotSucceed);
        assert_eq!(is_recorded, is_in_vain, "{priority}: {trace:?}");
    }
}

#[test]
fn trace_of_protected_candidate_contains_protection() {
    let none = PreemptionLimits::default();
    let limits = PreemptionLimits {
        min_run_within_s: Some(101),
        ..none
    };
    let (_, trace) = victims("q0", 4, limits, none);
    let spared = Protection::BelowMinRuntime {
        runtime_s: 100,
        min_runtime_s: 101,
    };
    let mut steps = trace.steps().iter();
    let is_recorded =
        steps.any(|it| matches!(it, Step::Protected { protection, .. } if *protection == spared));
    assert!(is_recorded, "{trace:?}");
}

#[test]
fn preemption_reasons_match_kueue() {
    let words = [
        (PreemptionReason::InClusterQueue, "InClusterQueue"),
        (PreemptionReason::InCohortReclamation, "InCohortReclamation"),
        (
            PreemptionReason::InCohortReclaimWhileBorrowing,
            "InCohortReclaimWhileBorrowing",
        ),
        (PreemptionReason::InCohortFairSharing, "InCohortFairSharing"),
    ];
    for (reason, word) in words {
        assert_eq!(reason.as_str(), word);
    }
}
