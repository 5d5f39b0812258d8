//! Limits of preemption: off, at their edge, and past it.

use crate::house::{House, Team, team};
use lockkeeper_preemption::{Options, PreemptionLimits, QueueVerdict, Spared, Step};

/// `guest` has borrowed all, and `owner` wants it back; both with limits.
fn lent(owner: PreemptionLimits, guest: PreemptionLimits) -> House {
    let owner = Team {
        limits: owner,
        ..team("owner", 2)
    };
    let guest = Team {
        limits: guest,
        ..team("guest", 0)
    };
    let mut house = House::new(Options::default(), &[owner, guest]);
    house.runs("low", "guest", 0, 1);
    house.runs("high", "guest", 7, 1);
    house
}

fn spared(steps: &[Step]) -> Vec<Spared> {
    let spared = steps.iter().filter_map(|it| match it {
        Step::Spared { why, .. } => Some(*why),
        _ => None,
    });
    spared.collect()
}

#[test]
fn without_limits_all_may_go() {
    let none = PreemptionLimits::default();
    let mut house = lent(none, none);
    house.waits("mine", "owner", 5, 2);
    assert_eq!(house.cycle(), ["mine preempts low high"]);
}

#[test]
fn nobody_above_the_threshold_is_reclaimed_from() {
    for (threshold_max, told) in [
        (7, "mine preempts low high"),
        (6, "mine NoCandidates"),
        (i32::MAX, "mine preempts low high"),
        (i32::MIN, "mine NoCandidates"),
    ] {
        let limits = PreemptionLimits {
            reclaim_threshold_max: Some(threshold_max),
            ..PreemptionLimits::default()
        };
        let mut house = lent(limits, PreemptionLimits::default());
        house.waits("mine", "owner", 5, 2);
        assert_eq!(house.cycle(), [told], "{threshold_max}");
    }
}

#[test]
fn nobody_above_the_threshold_is_taken_in_the_queue() {
    for (threshold_max, told) in [(3, "mine preempts old"), (2, "mine NoCandidates")] {
        let limits = PreemptionLimits {
            within_threshold_max: Some(threshold_max),
            ..PreemptionLimits::default()
        };
        let owner = Team {
            limits,
            ..team("owner", 1)
        };
        let mut house = House::new(Options::default(), &[owner]);
        house.runs("old", "owner", 3, 1);
        house.waits("mine", "owner", 5, 1);
        assert_eq!(house.cycle(), [told], "{threshold_max}");
    }
}

#[test]
fn thresholds_are_in_the_trace() {
    let limits = PreemptionLimits {
        reclaim_threshold_max: Some(0),
        ..PreemptionLimits::default()
    };
    // What may be taken is not enough: that is known without a search.
    let mut house = lent(limits, PreemptionLimits::default());
    house.waits("mine", "owner", 5, 2);
    let steps = house.steps("mine");
    let thresholds = Step::Thresholds {
        within_max: None,
        reclaim_max: Some(0),
    };
    assert!(steps.contains(&thresholds), "{steps:?}");
    // With one of its own it is enough, and who is above the threshold is passed over.
    let owner = Team {
        limits,
        ..team("owner", 3)
    };
    let mut house = House::new(Options::default(), &[owner, team("guest", 0)]);
    house.runs("low", "guest", 0, 1);
    house.runs("high", "guest", 4, 1);
    house.runs("own", "owner", 0, 1);
    house.waits("mine", "owner", 5, 2);
    let steps = house.steps("mine");
    let verdict = QueueVerdict::AboveThreshold { threshold_max: 0 };
    let is_it = |it: &Step| matches!(it, Step::Queue { verdict: v, .. } if *v == verdict);
    assert!(steps.iter().any(is_it), "{steps:?}");
}

#[test]
fn who_runs_too_short_is_spared_until_the_time_has_come() {
    let limits = PreemptionLimits {
        min_run_beyond_s: Some(30),
        min_run_within_s: Some(1_000),
        ..PreemptionLimits::default()
    };
    let mut house = lent(PreemptionLimits::default(), limits);
    house.now_s += 27;
    house.waits("mine", "owner", 5, 2);
    let too_short = Spared::RunsTooShort {
        for_s: 29,
        least_s: 30,
    };
    let steps = house.steps("mine");
    assert!(spared(&steps).contains(&too_short), "{steps:?}");
    // It is parked, and nothing happens but that time goes by.
    assert_eq!(house.state.next_wake_s(), Some(1_031));
    assert_eq!(house.cycle(), ["mine preempts low high"]);
    assert_eq!(house.now_s, 1_031);
}

#[test]
fn nobody_is_preempted_more_often_than_may_be() {
    let limits = PreemptionLimits {
        preemptions_max: Some(1),
        ..PreemptionLimits::default()
    };
    let mut house = lent(PreemptionLimits::default(), limits);
    house.waits("mine", "owner", 5, 2);
    assert_eq!(house.cycle(), ["mine preempts low high"]);
    house.goes("low");
    house.goes("high");
    assert_eq!(house.cycle()[0], "mine Admit");
    house.is_gone("mine");
    house.cycle();
    house.cycle();
    house.waits("again", "owner", 5, 2);
    let steps = house.steps("again");
    assert!(
        spared(&steps).contains(&Spared::PreemptedTooOften { times: 1 }),
        "{steps:?}"
    );
}

#[test]
fn only_so_many_go_in_a_cycle() {
    for (all, of_guest, told) in [
        (Some(1), None, "mine NoCandidates"),
        (None, Some(1), "mine NoCandidates"),
        (Some(2), Some(2), "mine preempts low high"),
    ] {
        let options = Options {
            victims_per_cycle_max: all,
            ..Options::default()
        };
        let guest = Team {
            limits: PreemptionLimits {
                victims_per_cycle_max: of_guest,
                ..PreemptionLimits::default()
            },
            ..team("guest", 0)
        };
        let mut house = House::new(options, &[team("owner", 2), guest]);
        house.runs("low", "guest", 0, 1);
        house.runs("high", "guest", 7, 1);
        house.waits("mine", "owner", 5, 2);
        assert_eq!(house.cycle(), [told]);
    }
}

#[test]
fn who_comes_too_late_in_a_cycle_comes_again() {
    let options = Options {
        victims_per_cycle_max: Some(1),
        ..Options::default()
    };
    let teams = [team("one", 1), team("two", 1), team("guest", 0)];
    let mut house = House::new(options, &teams);
    house.runs("low", "guest", 0, 1);
    house.runs("high", "guest", 7, 1);
    house.waits("first", "one", 9, 1);
    house.waits("second", "two", 5, 1);
    // Both want the same one; the second then gets the other, but not in this cycle.
    let told = house.cycle();
    assert_eq!(told[0], "first preempts low");
    assert!(told[1].starts_with("second Skip"), "{told:?}");
    // The one that goes already costs nothing.
    assert_eq!(
        house.cycle(),
        ["first preempts low", "second preempts high"]
    );
}
