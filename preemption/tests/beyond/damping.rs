//! Held quota, and circles that are cut.

use crate::house::{House, Team, team};
use lockkeeper_preemption::{
    Damping, Mode, Options, QueueingStrategy, ReclaimWithinCohort, Spared, Step, Thrash, Trace,
};

fn options(damping: Damping) -> Options {
    Options {
        damping,
        ..Options::default()
    }
}

/// `owner` has all the quota; two workloads of `guest` have borrowed it, and `other` would like to.
fn lent(damping: Damping) -> House {
    let teams = [team("owner", 2), team("guest", 0), team("other", 0)];
    let mut house = House::new(options(damping), &teams);
    house.runs("guest-1", "guest", 0, 1);
    house.runs("guest-2", "guest", 0, 1);
    house.waits("mine", "owner", 0, 2);
    assert_eq!(house.cycle(), ["mine preempts guest-2 guest-1"]);
    house
}

#[test]
fn what_a_victim_frees_is_not_for_whoever_comes_first() {
    // Without damping the other one fits, and is the next victim (Kueue issue 13797).
    for (damping, mode) in [(Damping::Off, Mode::Fit), (Damping::On, Mode::NoFit)] {
        let mut house = lent(damping);
        house.goes("guest-1");
        house.waits("theirs", "other", 1, 1);
        let id = house.state.workload("theirs").unwrap();
        let alone = house.state.nominate(id, Trace::off()).unwrap();
        assert_eq!(alone.assignment.mode, mode, "{damping:?}");
        assert!(alone.victims.is_empty());
    }
}

#[test]
fn it_is_held_as_far_as_the_victims_have_gone() {
    let mut house = lent(Damping::On);
    let held = |house: &House| {
        let all = house.state.held_quota();
        let of_first = all.first().map(|(_, amounts)| amounts.clone());
        of_first.map(|it| it.iter().map(|(_, amount)| amount.get()).sum::<i64>())
    };
    assert_eq!(held(&house), Some(0));
    house.goes("guest-1");
    assert_eq!(held(&house), Some(1));
    house.goes("guest-2");
    assert_eq!(held(&house), Some(2));
    house.cycle();
    assert_eq!(held(&house), None);
}

#[test]
fn it_is_let_go_when_the_preemptor_is_gone_or_waits_for_something_else() {
    for leave in [
        |house: &mut House| house.is_gone("mine"),
        |house: &mut House| {
            let id = house.state.workload("mine").unwrap();
            house.state.hold(id, 9_999);
        },
        |house: &mut House| house.state.remove_queue("owner"),
    ] {
        let mut house = lent(Damping::On);
        house.goes("guest-1");
        house.cycle();
        leave(&mut house);
        house.traced();
        assert!(house.state.held_quota().is_empty());
    }
}

#[test]
fn a_higher_priority_does_not_wait_for_it() {
    let teams = [team("owner", 0), team("rich", 2), team("guest", 0)];
    let mut house = House::new(options(Damping::On), &teams);
    house.runs("low", "guest", 0, 2);
    house.runs("own", "owner", 0, 0);
    // The first one reclaims within the quota of the cohort's owner.
    house.waits("first", "rich", 5, 2);
    assert_eq!(house.cycle(), ["first preempts low"]);
    house.goes("low");
    house.set(&Team {
        strategy: QueueingStrategy::StrictFifo,
        ..team("rich", 2)
    });
    house.waits("urgent", "rich", 9, 2);
    let id = house.state.workload("urgent").unwrap();
    let cycle = house.traced();
    let entry = cycle.entries.iter().find(|it| it.workload == id).unwrap();
    assert_eq!(house.told(entry), "urgent Admit");
    assert_eq!(entry.displaced, [house.state.workload("first").unwrap()]);
    assert!(house.state.held_quota().is_empty());
}

#[test]
fn nobody_counts_on_a_victim_of_another() {
    let mut house = lent(Damping::On);
    // It would be within the quota of its own too, and the victims are on their way.
    house.set(&team("other", 1));
    house.waits("theirs", "other", 5, 1);
    let steps = house.steps("theirs");
    let is_promised = |it: &Step| {
        matches!(
            it,
            Step::Spared {
                why: Spared::Promised,
                ..
            }
        )
    };
    let is_held = |it: &Step| matches!(it, Step::Held { .. });
    assert!(steps.iter().any(is_held), "{steps:?}");
    assert!(
        steps.iter().any(is_promised) || !house.state.held_quota().is_empty(),
        "{steps:?}"
    );
}

#[test]
fn who_was_preempted_in_a_circle_is_spared_until_the_circle_is_broken() {
    // Each may take from the other: both have half of what each wants.
    let one = Team {
        reclaim: ReclaimWithinCohort::Any,
        ..team("one", 1)
    };
    let mut house = House::new(options(Damping::On), &[one, team("two", 1)]);
    house.runs("big", "two", 0, 2);
    house.waits("small", "one", 0, 1);
    assert_eq!(house.cycle(), ["small preempts big"]);
    house.goes("big");
    assert_eq!(house.cycle()[0], "small Admit");
    // It comes back in another way, such as by a larger quota, and the small one is preempted.
    house.is_gone("small");
    house.cycle();
    house.waits("small", "one", 0, 1);
    assert_eq!(house.cycle(), ["small preempts big"]);
    let thrash = Thrash {
        preempted: 1,
        readmitted: 1,
        preempted_again: 0,
    };
    assert_eq!(house.state.thrash(), thrash);
    house.goes("big");
    assert_eq!(house.state.thrash().preempted_again, 1);
    assert_eq!(
        house
            .state
            .preemptions(house.state.workload("big").unwrap()),
        2
    );
}
