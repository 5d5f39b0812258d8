//! The choice of victims among equal priorities: whether a queue borrows, and when other queues stop lending.

use crate::fixture::{Fixture, TestQueue, test_queue};
use lockkeeper_preemption::{
    Algorithm, BorrowWithinCohort, CandidateVerdict, FairStrategy, Options, PreemptionLimits,
    QueueVerdict, ReclaimWithinCohort, Step, WithinClusterQueue,
};

/// `owner` has some workloads, and `guest` one that borrows; if `owner` has 3 workloads, quota for 3 is free.
fn owner_and_borrower(owner: TestQueue, own: usize, guest: TestQueue, priority: i32) -> Fixture {
    let mut house = Fixture::new(Options::default(), &[owner, guest, test_queue("idle", 6)]);
    for name in ["own1", "own2", "own3", "own4"].iter().take(own) {
        house.add_admitted(name, "owner", 0, 1);
    }
    house.add_admitted("lent", "guest", priority, 4);
    house
}

#[test]
fn classical_search_without_borrowing_only_if_others_lose() {
    let lower = TestQueue {
        reclaim: ReclaimWithinCohort::LowerPriority,
        ..test_queue("owner", 4)
    };
    let borrows = TestQueue {
        borrow: BorrowWithinCohort::LowerPriority {
            threshold_max: None,
        },
        ..lower
    };
    let guest = test_queue("guest", 0);
    let spared = TestQueue {
        limits: PreemptionLimits {
            min_run_beyond_s: Some(1_000),
            ..PreemptionLimits::default()
        },
        ..guest
    };
    let (one, three) = ("mine preempts own3", "mine preempts own1 own3 own2");
    for (what, owner, own, guest, priority, expected) in [
        ("it could", lower, 3, guest, 0, three),
        (
            "the priority of the guest is too high",
            lower,
            3,
            guest,
            9,
            one,
        ),
        ("limits protect the guest", lower, 3, spared, 0, one),
        (
            "the owner may borrow",
            borrows,
            3,
            guest,
            0,
            "mine preempts lent",
        ),
        (
            "the quota is used up",
            lower,
            4,
            guest,
            0,
            "mine preempts own4 own3",
        ),
    ] {
        let mut house = owner_and_borrower(owner, own, guest, priority);
        house.add_pending("mine", "owner", 5, 4);
        assert_eq!(house.run_cycle(), [expected], "{what}");
    }
}

#[test]
fn classical_search_reclaims_cohort_quota_from_other_cohorts() {
    let left = TestQueue {
        cohort: "left",
        ..test_queue("owner", 2)
    };
    let sibling = TestQueue {
        name: "sibling",
        nominal: 4,
        ..left
    };
    let guest = TestQueue {
        cohort: "right",
        ..test_queue("guest", 0)
    };
    let mut house = Fixture::new(Options::default(), &[left, sibling, guest]);
    house.add_cohorts(&["left", "right"]);
    house.add_admitted("lent", "guest", 9, 5);
    // More than the nominal quota of the queue, but not more than that of its cohort.
    house.add_pending("mine", "owner", 5, 3);
    assert_eq!(house.run_cycle(), ["mine preempts lent"]);
}

#[test]
fn classical_search_skips_queue_once_cohort_stops_borrowing() {
    let owner = TestQueue {
        cohort: "left",
        borrow: BorrowWithinCohort::LowerPriority {
            threshold_max: None,
        },
        ..test_queue("owner", 4)
    };
    let guest = TestQueue {
        cohort: "right",
        ..test_queue("guest", 0)
    };
    let sibling = TestQueue {
        name: "sibling",
        nominal: 2,
        ..guest
    };
    let mut house = Fixture::new(Options::default(), &[owner, guest, sibling]);
    house.add_cohorts(&["left", "right"]);
    for name in ["lent1", "lent2", "lent3"] {
        house.add_admitted(name, "guest", 0, 1);
    }
    house.add_admitted("own", "owner", 0, 1);
    house.add_admitted("kept", "owner", 9, 2);
    house.add_pending("mine", "owner", 5, 2);
    assert_eq!(house.run_cycle(), ["mine preempts lent3 own"]);
}

#[test]
fn search_with_only_equally_old_workloads_tries_no_candidate() {
    let owner = TestQueue {
        within: WithinClusterQueue::LowerOrNewerEqualPriority,
        ..test_queue("owner", 1)
    };
    for (age_s, is_attempted) in [(0, false), (1, true)] {
        let mut house = Fixture::new(Options::default(), &[owner]);
        house.now_s += age_s;
        house.add_admitted("own", "owner", 5, 1);
        house.now_s = 1_000;
        house.add_pending("mine", "owner", 5, 1);
        let steps = house.trace_steps("mine");
        let is_attempt = |it: &Step| matches!(it, Step::Attempt { .. });
        assert_eq!(steps.iter().any(is_attempt), is_attempted, "{steps:?}");
    }
}

#[test]
fn trace_of_search_forbidden_by_policy_omits_threshold() {
    let owner = TestQueue {
        reclaim: ReclaimWithinCohort::LowerPriority,
        limits: PreemptionLimits {
            reclaim_threshold_max: Some(0),
            ..PreemptionLimits::default()
        },
        ..test_queue("owner", 3)
    };
    let threshold = QueueVerdict::AboveThreshold { threshold_max: 0 };
    for (priority, expected) in [(4, threshold), (5, QueueVerdict::PriorityTooHigh)] {
        let mut house = Fixture::new(Options::default(), &[owner, test_queue("guest", 0)]);
        house.add_admitted("low", "guest", 0, 1);
        house.add_admitted("high", "guest", priority, 1);
        house.add_admitted("own", "owner", 0, 1);
        house.add_pending("mine", "owner", 5, 2);
        let steps = house.trace_steps("mine");
        let mut verdicts = steps.iter().filter_map(|step| match step {
            Step::Queue { verdict, .. } => Some(*verdict),
            _ => None,
        });
        assert_eq!(verdicts.next(), Some(expected), "{priority}");
    }
}

fn fair() -> Options {
    let strategies = vec![
        FairStrategy::LessThanOrEqualToFinalShare,
        FairStrategy::LessThanInitialShare,
    ];
    Options {
        algorithm: Algorithm::FairSharing(strategies),
        ..Options::default()
    }
}

#[test]
fn fair_search_picks_cohort_or_queue_with_larger_share() {
    for (near, far, expected) in [
        (2, 1, "mine preempts near"),
        (1, 1, "mine preempts far"),
        (1, 2, "mine preempts far"),
    ] {
        let guest = TestQueue {
            cohort: "right",
            ..test_queue("guest", 0)
        };
        let teams = [
            test_queue("owner", near + far),
            test_queue("beside", 0),
            guest,
        ];
        let mut house = Fixture::new(fair(), &teams);
        house.add_cohorts(&["right"]);
        house.add_admitted("near", "beside", 0, near);
        house.add_admitted("far", "guest", 0, far);
        house.add_pending("mine", "owner", 5, 1);
        assert_eq!(house.run_cycle(), [expected], "{near} {far}");
    }
}

#[test]
fn fair_search_with_equal_shares_prefers_evicted_workload() {
    for (evicted, expected) in [("low", "mine preempts low"), ("high", "mine preempts high")] {
        let teams = [
            test_queue("owner", 2),
            test_queue("one", 0),
            test_queue("two", 0),
        ];
        let mut house = Fixture::new(fair(), &teams);
        house.add_admitted("low", "one", 0, 1);
        house.add_admitted("high", "two", 7, 1);
        house.mark_evicted(evicted);
        house.add_pending("mine", "owner", 5, 1);
        assert_eq!(house.run_cycle(), [expected]);
    }
}

#[test]
fn fair_search_with_equal_shares_tries_own_queue_last() {
    let teams = [
        test_queue("owner", 0),
        test_queue("guest", 0),
        test_queue("idle", 3),
    ];
    let mut house = Fixture::new(fair(), &teams);
    house.add_admitted("own", "owner", 0, 1);
    house.add_admitted("lent", "guest", 7, 2);
    house.add_pending("mine", "owner", 5, 1);
    let steps = house.trace_steps("mine");
    let mut verdicts = steps.iter().filter_map(|step| match step {
        Step::Candidate { verdict, .. } => Some(*verdict),
        _ => None,
    });
    assert_eq!(verdicts.next(), Some(CandidateVerdict::ShareTooLarge));
    assert_eq!(verdicts.next(), Some(CandidateVerdict::Selected));
}
