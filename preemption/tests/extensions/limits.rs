//! Preemption limits: disabled, at the boundary, and exceeded.

use crate::fixture::{Fixture, TestQueue, test_queue};
use lockkeeper_preemption::{
    DampingView, NextDecision, Options, PreemptionLimits, Protection, QueueVerdict, Step, WhatIf,
};

/// `guest` has borrowed all the quota, and `owner` reclaims it; both have limits.
fn with_borrowed_quota(owner: PreemptionLimits, guest: PreemptionLimits) -> Fixture {
    let owner = TestQueue {
        limits: owner,
        ..test_queue("owner", 2)
    };
    let guest = TestQueue {
        limits: guest,
        ..test_queue("guest", 0)
    };
    let mut house = Fixture::new(Options::default(), &[owner, guest]);
    house.add_admitted("low", "guest", 0, 1);
    house.add_admitted("high", "guest", 7, 1);
    house
}

fn protections(steps: &[Step]) -> Vec<Protection> {
    let spared = steps.iter().filter_map(|step| match step {
        Step::Protected {
            protection: why, ..
        } => Some(*why),
        _ => None,
    });
    spared.collect()
}

#[test]
fn victims_without_limits_are_unrestricted() {
    let none = PreemptionLimits::default();
    let mut house = with_borrowed_quota(none, none);
    house.add_pending("mine", "owner", 5, 2);
    assert_eq!(house.run_cycle(), ["mine preempts low high"]);
}

#[test]
fn reclaim_threshold_protects_higher_priorities() {
    for (threshold_max, expected) in [
        (7, "mine preempts low high"),
        (6, "mine NoCandidates"),
        (i32::MAX, "mine preempts low high"),
        (i32::MIN, "mine NoCandidates"),
    ] {
        let limits = PreemptionLimits {
            reclaim_threshold_max: Some(threshold_max),
            ..PreemptionLimits::default()
        };
        let mut house = with_borrowed_quota(limits, PreemptionLimits::default());
        house.add_pending("mine", "owner", 5, 2);
        assert_eq!(house.run_cycle(), [expected], "{threshold_max}");
    }
}

#[test]
fn within_queue_threshold_protects_higher_priorities() {
    for (threshold_max, expected) in [(3, "mine preempts old"), (2, "mine NoCandidates")] {
        let limits = PreemptionLimits {
            within_threshold_max: Some(threshold_max),
            ..PreemptionLimits::default()
        };
        let owner = TestQueue {
            limits,
            ..test_queue("owner", 1)
        };
        let mut house = Fixture::new(Options::default(), &[owner]);
        house.add_admitted("old", "owner", 3, 1);
        house.add_pending("mine", "owner", 5, 1);
        assert_eq!(house.run_cycle(), [expected], "{threshold_max}");
    }
}

#[test]
fn trace_of_blocked_search_contains_thresholds() {
    let limits = PreemptionLimits {
        reclaim_threshold_max: Some(0),
        ..PreemptionLimits::default()
    };
    // The permitted victims are not enough: this is determined without a search.
    let mut house = with_borrowed_quota(limits, PreemptionLimits::default());
    house.add_pending("mine", "owner", 5, 2);
    let steps = house.trace_steps("mine");
    let thresholds = Step::Thresholds {
        within_max: None,
        reclaim_max: Some(0),
    };
    assert!(steps.contains(&thresholds), "{steps:?}");
    // With a victim in the queue itself they are enough, and candidates above the threshold are skipped.
    let owner = TestQueue {
        limits,
        ..test_queue("owner", 3)
    };
    let mut house = Fixture::new(Options::default(), &[owner, test_queue("guest", 0)]);
    house.add_admitted("low", "guest", 0, 1);
    house.add_admitted("high", "guest", 4, 1);
    house.add_admitted("own", "owner", 0, 1);
    house.add_pending("mine", "owner", 5, 2);
    let steps = house.trace_steps("mine");
    let verdict = QueueVerdict::AboveThreshold { threshold_max: 0 };
    let is_expected = |it: &Step| matches!(it, Step::Queue { verdict: v, .. } if *v == verdict);
    assert!(steps.iter().any(is_expected), "{steps:?}");
}

#[test]
fn min_runtime_protects_workload_until_it_elapses() {
    let limits = PreemptionLimits {
        min_run_beyond_s: Some(30),
        min_run_within_s: Some(1_000),
        ..PreemptionLimits::default()
    };
    let mut house = with_borrowed_quota(PreemptionLimits::default(), limits);
    house.now_s += 27;
    house.add_pending("mine", "owner", 5, 2);
    let too_short = Protection::BelowMinRuntime {
        runtime_s: 29,
        min_runtime_s: 30,
    };
    let steps = house.trace_steps("mine");
    assert!(protections(&steps).contains(&too_short), "{steps:?}");
    // The workload is inadmissible, and no event occurs except the passage of time.
    assert_eq!(DampingView::new(&house.state).next_wake_s(), Some(1_031));
    assert_eq!(house.run_cycle(), ["mine preempts low high"]);
    assert_eq!(house.now_s, 1_031);
}

#[test]
fn preemptions_max_protects_workload_at_the_limit() {
    let limits = PreemptionLimits {
        preemptions_max: Some(1),
        ..PreemptionLimits::default()
    };
    let mut house = with_borrowed_quota(PreemptionLimits::default(), limits);
    house.add_pending("mine", "owner", 5, 2);
    assert_eq!(house.run_cycle(), ["mine preempts low high"]);
    house.release("low");
    house.release("high");
    assert_eq!(house.run_cycle()[0], "mine Admit");
    house.remove("mine");
    house.run_cycle();
    house.run_cycle();
    house.add_pending("again", "owner", 5, 2);
    let steps = house.trace_steps("again");
    assert!(
        protections(&steps).contains(&Protection::PreemptedTooOften { times: 1 }),
        "{steps:?}"
    );
}

#[test]
fn victims_per_cycle_max_limits_one_cycle() {
    for (all, of_guest, expected) in [
        (Some(1), None, "mine NoCandidates"),
        (None, Some(1), "mine NoCandidates"),
        (Some(2), Some(2), "mine preempts low high"),
    ] {
        let options = Options {
            victims_per_cycle_max: all,
            ..Options::default()
        };
        let guest = TestQueue {
            limits: PreemptionLimits {
                victims_per_cycle_max: of_guest,
                ..PreemptionLimits::default()
            },
            ..test_queue("guest", 0)
        };
        let mut house = Fixture::new(options, &[test_queue("owner", 2), guest]);
        house.add_admitted("low", "guest", 0, 1);
        house.add_admitted("high", "guest", 7, 1);
        house.add_pending("mine", "owner", 5, 2);
        assert_eq!(house.run_cycle(), [expected]);
    }
}

#[test]
fn entry_over_victim_limit_is_requeued() {
    let options = Options {
        victims_per_cycle_max: Some(1),
        ..Options::default()
    };
    let teams = [
        test_queue("one", 1),
        test_queue("two", 1),
        test_queue("guest", 0),
    ];
    let mut house = Fixture::new(options, &teams);
    house.add_admitted("low", "guest", 0, 1);
    house.add_admitted("high", "guest", 7, 1);
    house.add_pending("first", "one", 9, 1);
    house.add_pending("second", "two", 5, 1);
    // Both need the same victim; the second preemptor then gets the other one, but not in this cycle.
    let actual = house.run_cycle();
    assert_eq!(actual[0], "first preempts low");
    assert!(actual[1].starts_with("second Skip"), "{actual:?}");
    // The victim that is already evicted does not count.
    assert_eq!(
        house.run_cycle(),
        ["first preempts low", "second preempts high"]
    );
}

/// A preview leaves out the heads of other trees, unless the victims of all trees are limited together.
#[test]
fn a_preview_is_the_decision_of_the_cycle_with_a_victim_limit_of_all_trees() {
    for (victims_per_cycle_max, cohort, is_preempting) in [
        (None, "other", true),
        (Some(1), "other", false),
        (Some(1), "all", false),
        (Some(2), "other", true),
    ] {
        let options = Options {
            victims_per_cycle_max,
            ..Options::default()
        };
        let two = TestQueue {
            cohort,
            ..test_queue("two", 1)
        };
        let mut house = Fixture::new(options, &[test_queue("one", 1), two]);
        house.add_admitted("low-one", "one", 0, 1);
        house.add_admitted("low-two", "two", 0, 1);
        house.add_pending("first", "one", 9, 1);
        house.add_pending("second", "two", 5, 1);
        let id = house.state.workload("second").unwrap();
        let next = WhatIf::new(&mut house.state).next_decision(id, false);
        let NextDecision::Decided(entry) = next else {
            panic!("{next:?}");
        };
        let previewed = house.describe_entry(&entry);
        assert!(house.run_cycle().contains(&previewed), "{previewed}");
        assert_eq!(
            previewed == "second preempts low-two",
            is_preempting,
            "{previewed}"
        );
    }
}

/// No event ends the delay: the state wakes up, and the workload preempts then.
#[test]
fn preemptor_waits_for_the_delay_of_its_queue() {
    let limits = PreemptionLimits {
        delay_s: Some(60),
        ..PreemptionLimits::default()
    };
    let mut house = with_borrowed_quota(limits, PreemptionLimits::default());
    let created_s = house.now_s;
    house.add_pending("mine", "owner", 5, 2);
    assert_eq!(house.run_cycle(), ["mine NoCandidates"]);
    let wake_s = DampingView::new(&house.state).next_wake_s();
    assert_eq!(wake_s, Some(created_s + 60));
    // A cycle runs one second later.
    house.now_s = created_s + 58;
    assert_eq!(house.run_cycle(), Vec::<String>::new());
    house.now_s = created_s + 59;
    assert_eq!(house.run_cycle(), ["mine preempts low high"]);
}

/// A limit of a queue replaces the default; 0 switches it off.
#[test]
fn default_limits_apply_to_queues_without_their_own() {
    let defaults = PreemptionLimits {
        min_run_beyond_s: Some(1_000),
        ..PreemptionLimits::default()
    };
    for (own, expected) in [
        (None, "mine NoCandidates"),
        (Some(0), "mine preempts low high"),
    ] {
        let limits = PreemptionLimits {
            min_run_beyond_s: own,
            ..PreemptionLimits::default()
        };
        let options = Options {
            preemption_limits: defaults,
            ..Options::default()
        };
        let guest = TestQueue {
            limits,
            ..test_queue("guest", 0)
        };
        let mut house = Fixture::new(options, &[test_queue("owner", 2), guest]);
        house.add_admitted("low", "guest", 0, 1);
        house.add_admitted("high", "guest", 7, 1);
        house.add_pending("mine", "owner", 5, 2);
        assert_eq!(house.run_cycle(), [expected], "{own:?}");
    }
}
