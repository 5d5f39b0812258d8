//! Who goes where the priorities leave a choice: whether a queue borrows, and when others stop giving.

use crate::house::{House, Team, team};
use lockkeeper_preemption::{
    Algorithm, BorrowWithinCohort, CandidateVerdict, FairStrategy, Options, PreemptionLimits,
    QueueVerdict, ReclaimWithinCohort, Step, WithinClusterQueue,
};

/// `owner` has some workloads to give, and `guest` one for which it borrows; with 3 of them, 3 are free.
fn torn(owner: Team, own: usize, guest: Team, priority: i32) -> House {
    let mut house = House::new(Options::default(), &[owner, guest, team("idle", 6)]);
    for name in ["own1", "own2", "own3", "own4"].iter().take(own) {
        house.runs(name, "owner", 0, 1);
    }
    house.runs("lent", "guest", priority, 4);
    house
}

#[test]
fn a_queue_avoids_to_borrow_only_where_that_could_take_from_others() {
    let lower = Team {
        reclaim: ReclaimWithinCohort::LowerPriority,
        ..team("owner", 4)
    };
    let borrows = Team {
        borrow: BorrowWithinCohort::LowerPriority {
            threshold_max: None,
        },
        ..lower
    };
    let guest = team("guest", 0);
    let spared = Team {
        limits: PreemptionLimits {
            min_run_beyond_s: Some(1_000),
            ..PreemptionLimits::default()
        },
        ..guest
    };
    let (one, three) = ("mine preempts own3", "mine preempts own1 own3 own2");
    for (what, owner, own, guest, priority, told) in [
        ("it could", lower, 3, guest, 0, three),
        ("its priority is too high", lower, 3, guest, 9, one),
        ("limits spare it", lower, 3, spared, 0, one),
        ("it may borrow", borrows, 3, guest, 0, "mine preempts lent"),
        (
            "the quota is used up",
            lower,
            4,
            guest,
            0,
            "mine preempts own4 own3",
        ),
    ] {
        let mut house = torn(owner, own, guest, priority);
        house.waits("mine", "owner", 5, 4);
        assert_eq!(house.cycle(), [told], "{what}");
    }
}

#[test]
fn what_its_cohort_lacks_a_queue_takes_back_from_beyond() {
    let left = Team {
        cohort: "left",
        ..team("owner", 2)
    };
    let sibling = Team {
        name: "sibling",
        nominal: 4,
        ..left
    };
    let guest = Team {
        cohort: "right",
        ..team("guest", 0)
    };
    let mut house = House::new(Options::default(), &[left, sibling, guest]);
    house.split(&["left", "right"]);
    house.runs("lent", "guest", 9, 5);
    // More than the queue's own quota, and not more than that of its cohort.
    house.waits("mine", "owner", 5, 3);
    assert_eq!(house.cycle(), ["mine preempts lent"]);
}

#[test]
fn a_queue_gives_no_more_once_its_cohort_has_given_back() {
    let owner = Team {
        cohort: "left",
        borrow: BorrowWithinCohort::LowerPriority {
            threshold_max: None,
        },
        ..team("owner", 4)
    };
    let guest = Team {
        cohort: "right",
        ..team("guest", 0)
    };
    let sibling = Team {
        name: "sibling",
        nominal: 2,
        ..guest
    };
    let mut house = House::new(Options::default(), &[owner, guest, sibling]);
    house.split(&["left", "right"]);
    for name in ["lent1", "lent2", "lent3"] {
        house.runs(name, "guest", 0, 1);
    }
    house.runs("own", "owner", 0, 1);
    house.runs("kept", "owner", 9, 2);
    house.waits("mine", "owner", 5, 2);
    assert_eq!(house.cycle(), ["mine preempts lent3 own"]);
}

#[test]
fn nothing_is_tried_where_all_are_as_old() {
    let owner = Team {
        within: WithinClusterQueue::LowerOrNewerEqualPriority,
        ..team("owner", 1)
    };
    for (age_s, is_tried) in [(0, false), (1, true)] {
        let mut house = House::new(Options::default(), &[owner]);
        house.now_s += age_s;
        house.runs("own", "owner", 5, 1);
        house.now_s = 1_000;
        house.waits("mine", "owner", 5, 1);
        let steps = house.steps("mine");
        let is_attempt = |it: &Step| matches!(it, Step::Attempt { .. });
        assert_eq!(steps.iter().any(is_attempt), is_tried, "{steps:?}");
    }
}

#[test]
fn a_threshold_is_not_blamed_for_what_the_policy_forbids() {
    let owner = Team {
        reclaim: ReclaimWithinCohort::LowerPriority,
        limits: PreemptionLimits {
            reclaim_threshold_max: Some(0),
            ..PreemptionLimits::default()
        },
        ..team("owner", 3)
    };
    let threshold = QueueVerdict::AboveThreshold { threshold_max: 0 };
    for (priority, expected) in [(4, threshold), (5, QueueVerdict::PriorityTooHigh)] {
        let mut house = House::new(Options::default(), &[owner, team("guest", 0)]);
        house.runs("low", "guest", 0, 1);
        house.runs("high", "guest", priority, 1);
        house.runs("own", "owner", 0, 1);
        house.waits("mine", "owner", 5, 2);
        let steps = house.steps("mine");
        let mut verdicts = steps.iter().filter_map(|it| match it {
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
fn a_cohort_is_taken_from_unless_a_queue_beside_it_has_the_larger_share() {
    for (near, far, told) in [
        (2, 1, "mine preempts near"),
        (1, 1, "mine preempts far"),
        (1, 2, "mine preempts far"),
    ] {
        let guest = Team {
            cohort: "right",
            ..team("guest", 0)
        };
        let teams = [team("owner", near + far), team("beside", 0), guest];
        let mut house = House::new(fair(), &teams);
        house.split(&["right"]);
        house.runs("near", "beside", 0, near);
        house.runs("far", "guest", 0, far);
        house.waits("mine", "owner", 5, 1);
        assert_eq!(house.cycle(), [told], "{near} {far}");
    }
}

#[test]
fn of_equal_shares_the_one_that_goes_already_is_taken_from() {
    for (evicted, told) in [("low", "mine preempts low"), ("high", "mine preempts high")] {
        let teams = [team("owner", 2), team("one", 0), team("two", 0)];
        let mut house = House::new(fair(), &teams);
        house.runs("low", "one", 0, 1);
        house.runs("high", "two", 7, 1);
        house.is_told_to_go(evicted);
        house.waits("mine", "owner", 5, 1);
        assert_eq!(house.cycle(), [told]);
    }
}

#[test]
fn of_equal_shares_the_others_are_looked_at_before_the_own_one() {
    let teams = [team("owner", 0), team("guest", 0), team("idle", 3)];
    let mut house = House::new(fair(), &teams);
    house.runs("own", "owner", 0, 1);
    house.runs("lent", "guest", 7, 2);
    house.waits("mine", "owner", 5, 1);
    let steps = house.steps("mine");
    let mut verdicts = steps.iter().filter_map(|it| match it {
        Step::Candidate { verdict, .. } => Some(*verdict),
        _ => None,
    });
    assert_eq!(verdicts.next(), Some(CandidateVerdict::ShareTooLarge));
    assert_eq!(verdicts.next(), Some(CandidateVerdict::Taken));
}
