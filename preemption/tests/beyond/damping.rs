//! Held quota, and circles that are cut.

use crate::house::{House, Team, team};
use lockkeeper_preemption::{
    Damping, Mode, Options, QueueingStrategy, Spared, Step, Thrash, Trace,
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
    let teams = [team("rich", 2), team("guest", 0)];
    let mut house = House::new(options(Damping::On), &teams);
    house.runs("low", "guest", 0, 2);
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
    let mut house = House::new(
        options(Damping::On),
        &[team("owner", 2), team("other", 1), team("guest", 0)],
    );
    house.runs("guest-2", "guest", 0, 1);
    house.runs("guest-1", "guest", 0, 2);
    house.waits("mine", "owner", 0, 2);
    let mine = house.state.workload("mine").unwrap();
    assert_eq!(house.cycle(), ["mine preempts guest-1"]);
    // The other one's own quota is lent too, and the first candidate is on its way for `mine`.
    house.waits("theirs", "other", 0, 1);
    let steps = house.steps("theirs");
    let guest = house.state.workload("guest-1").unwrap();
    assert!(
        steps.contains(&Step::Spared {
            workload: guest,
            why: Spared::Promised
        }),
        "{steps:?}"
    );
    let is_held = |it: &Step| matches!(it, Step::Held { preemptor, .. } if *preemptor == mine);
    assert!(steps.iter().any(is_held), "{steps:?}");
    assert_eq!(
        house.cycle(),
        ["mine preempts guest-1", "theirs preempts guest-2"]
    );
}

#[test]
fn what_is_undone_again_is_counted() {
    let mut house = House::new(options(Damping::On), &[team("one", 1), team("two", 1)]);
    house.runs("big", "two", 0, 2);
    house.waits("small", "one", 0, 1);
    assert_eq!(house.cycle(), ["small preempts big"]);
    house.goes("big");
    assert_eq!(house.cycle()[0], "small Admit");
    house.is_gone("small");
    assert_eq!(house.cycle(), ["big Admit"]);
    let once = Thrash {
        preempted: 1,
        readmitted: 1,
        preempted_again: 0,
    };
    assert_eq!(house.state.thrash(), once);
    // Another one of that name is not the one from before: it may.
    house.waits("small", "one", 0, 1);
    assert_eq!(house.cycle(), ["small preempts big"]);
    house.goes("big");
    assert_eq!(house.state.thrash().preempted_again, 1);
    let big = house.state.workload("big").unwrap();
    assert_eq!(house.state.preemptions(big), 2);
}

#[test]
fn nobody_is_taken_twice_while_who_replaced_the_preemptor_is_there() {
    let mut house = House::new(options(Damping::On), &[team("one", 2), team("two", 1)]);
    house.runs("big", "two", 5, 3);
    house.waits("small", "one", 0, 2);
    assert_eq!(house.cycle(), ["small preempts big"]);
    house.goes("big");
    assert_eq!(house.cycle()[0], "small Admit");
    house.waits("higher", "one", 9, 2);
    let told = house.cycle();
    assert!(
        told.contains(&"higher preempts small".to_owned()),
        "{told:?}"
    );
    house.goes("small");
    let told = house.cycle();
    assert!(told.contains(&"higher Admit".to_owned()), "{told:?}");
    // The higher one steps aside, and so does the small one: the big one is back.
    for name in ["small", "higher"] {
        let id = house.state.workload(name).unwrap();
        house
            .state
            .hold(id, if name == "small" { 2_000 } else { 9_000 });
    }
    house.goes("higher");
    assert_eq!(house.cycle(), ["big Admit"]);
    house.now_s = 2_000;
    let big = house.state.workload("big").unwrap();
    let steps = house.steps("small");
    assert!(
        steps.contains(&Step::Spared {
            workload: big,
            why: Spared::TakenBefore
        }),
        "{steps:?}"
    );
    // With the one who took its place the circle is gone.
    house.is_gone("higher");
    house.state.set_now(2_001);
    let small = house.state.workload("small").unwrap();
    let alone = house.state.nominate(small, Trace::off()).unwrap();
    assert_eq!(alone.victims.len(), 1);
}
