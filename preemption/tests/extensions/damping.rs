//! Held quota, and the end of preemption loops.

use crate::fixture::{Fixture, TestQueue, test_queue};
use lockkeeper_preemption::{
    Damping, DampingView, Mode, Options, Protection, QueueingStrategy, RepeatStats, Step, Trace,
    WhatIf,
};

fn options(damping: Damping) -> Options {
    Options {
        damping,
        ..Options::default()
    }
}

/// `owner` has all the quota; two workloads of `guest` have borrowed it, and `other` wants to borrow it, too.
fn with_borrowed_quota(damping: Damping) -> Fixture {
    let teams = [
        test_queue("owner", 2),
        test_queue("guest", 0),
        test_queue("other", 0),
    ];
    let mut house = Fixture::new(options(damping), &teams);
    house.add_admitted("guest-1", "guest", 0, 1);
    house.add_admitted("guest-2", "guest", 0, 1);
    house.add_pending("mine", "owner", 0, 2);
    assert_eq!(house.run_cycle(), ["mine preempts guest-2 guest-1"]);
    house
}

#[test]
fn freed_quota_with_damping_is_held_for_the_preemptor() {
    // Without damping the workload of `other` fits, and is the next victim (Kueue issue 13797).
    for (damping, mode) in [(Damping::Off, Mode::Fit), (Damping::On, Mode::NoFit)] {
        let mut house = with_borrowed_quota(damping);
        house.release("guest-1");
        house.add_pending("theirs", "other", 1, 1);
        let id = house.state.workload("theirs").unwrap();
        let alone = WhatIf::new(&mut house.state)
            .nominate(id, Trace::off())
            .unwrap();
        assert_eq!(alone.assignment.mode, mode, "{damping:?}");
        assert!(alone.victims.is_empty());
    }
}

#[test]
fn held_quota_grows_as_victims_release_quota() {
    let mut house = with_borrowed_quota(Damping::On);
    let held = |house: &Fixture| {
        let all = DampingView::new(&house.state).held_quota();
        let of_first = all.first().map(|(_, amounts)| amounts.clone());
        of_first.map(|it| it.iter().map(|(_, amount)| amount.get()).sum::<i64>())
    };
    assert_eq!(held(&house), Some(0));
    house.release("guest-1");
    assert_eq!(held(&house), Some(1));
    house.release("guest-2");
    assert_eq!(held(&house), Some(2));
    house.run_cycle();
    assert_eq!(held(&house), None);
}

#[test]
fn held_quota_of_removed_or_changed_preemptor_is_released() {
    for leave in [
        |house: &mut Fixture| house.remove("mine"),
        |house: &mut Fixture| {
            let id = house.state.workload("mine").unwrap();
            house.state.set_backoff(id, 9_999);
        },
        |house: &mut Fixture| house.state.remove_queue("owner"),
    ] {
        let mut house = with_borrowed_quota(Damping::On);
        house.release("guest-1");
        house.run_cycle();
        leave(&mut house);
        house.run_traced_cycle();
        assert!(DampingView::new(&house.state).held_quota().is_empty());
    }
}

#[test]
fn higher_priority_preemptor_displaces_held_quota() {
    let teams = [test_queue("rich", 2), test_queue("guest", 0)];
    let mut house = Fixture::new(options(Damping::On), &teams);
    house.add_admitted("low", "guest", 0, 2);
    house.add_pending("first", "rich", 5, 2);
    assert_eq!(house.run_cycle(), ["first preempts low"]);
    house.release("low");
    house.set_queue(&TestQueue {
        strategy: QueueingStrategy::StrictFifo,
        ..test_queue("rich", 2)
    });
    house.add_pending("urgent", "rich", 9, 2);
    let id = house.state.workload("urgent").unwrap();
    let cycle = house.run_traced_cycle();
    let entry = cycle.entries.iter().find(|it| it.workload == id).unwrap();
    assert_eq!(house.describe_entry(entry), "urgent Admit");
    assert_eq!(entry.displaced, [house.state.workload("first").unwrap()]);
    assert!(DampingView::new(&house.state).held_quota().is_empty());
}

#[test]
fn victim_of_another_preemptor_is_protected() {
    let mut house = Fixture::new(
        options(Damping::On),
        &[
            test_queue("owner", 2),
            test_queue("other", 1),
            test_queue("guest", 0),
        ],
    );
    house.add_admitted("guest-2", "guest", 0, 1);
    house.add_admitted("guest-1", "guest", 0, 2);
    house.add_pending("mine", "owner", 0, 2);
    let mine = house.state.workload("mine").unwrap();
    assert_eq!(house.run_cycle(), ["mine preempts guest-1"]);
    // The quota of `other` is lent as well, and the first candidate is already evicted for `mine`.
    house.add_pending("theirs", "other", 0, 1);
    let steps = house.trace_steps("theirs");
    let guest = house.state.workload("guest-1").unwrap();
    assert!(
        steps.contains(&Step::Protected {
            workload: guest,
            protection: Protection::EvictedForAnother
        }),
        "{steps:?}"
    );
    let is_held = |it: &Step| matches!(it, Step::QuotaHeld { preemptor, .. } if *preemptor == mine);
    assert!(steps.iter().any(is_held), "{steps:?}");
    assert_eq!(
        house.run_cycle(),
        ["mine preempts guest-1", "theirs preempts guest-2"]
    );
}

#[test]
fn repeat_stats_after_repeated_preemption_count_it() {
    let mut house = Fixture::new(
        options(Damping::On),
        &[test_queue("one", 1), test_queue("two", 1)],
    );
    house.add_admitted("big", "two", 0, 2);
    house.add_pending("small", "one", 0, 1);
    assert_eq!(house.run_cycle(), ["small preempts big"]);
    house.release("big");
    assert_eq!(house.run_cycle()[0], "small Admit");
    house.remove("small");
    assert_eq!(house.run_cycle(), ["big Admit"]);
    let once = RepeatStats {
        preempted: 1,
        readmitted: 1,
        preempted_again: 0,
    };
    assert_eq!(DampingView::new(&house.state).repeat_stats(), once);
    // A new workload with the same name is not the former preemptor: it may preempt.
    house.add_pending("small", "one", 0, 1);
    assert_eq!(house.run_cycle(), ["small preempts big"]);
    house.release("big");
    assert_eq!(
        DampingView::new(&house.state)
            .repeat_stats()
            .preempted_again,
        1
    );
    let big = house.state.workload("big").unwrap();
    assert_eq!(house.state.workload_view(big).preemption_count(), 2);
}

#[test]
fn preempted_victim_is_protected_while_replacement_is_admitted() {
    let mut house = Fixture::new(
        options(Damping::On),
        &[test_queue("one", 2), test_queue("two", 1)],
    );
    house.add_admitted("big", "two", 5, 3);
    house.add_pending("small", "one", 0, 2);
    assert_eq!(house.run_cycle(), ["small preempts big"]);
    house.release("big");
    assert_eq!(house.run_cycle()[0], "small Admit");
    house.add_pending("higher", "one", 9, 2);
    let actual = house.run_cycle();
    assert!(
        actual.contains(&"higher preempts small".to_owned()),
        "{actual:?}"
    );
    house.release("small");
    let actual = house.run_cycle();
    assert!(actual.contains(&"higher Admit".to_owned()), "{actual:?}");
    // Both `higher` and `small` are in backoff: `big` is admitted again.
    for name in ["small", "higher"] {
        let id = house.state.workload(name).unwrap();
        house
            .state
            .set_backoff(id, if name == "small" { 2_000 } else { 9_000 });
    }
    house.release("higher");
    assert_eq!(house.run_cycle(), ["big Admit"]);
    house.now_s = 2_000;
    let big = house.state.workload("big").unwrap();
    let steps = house.trace_steps("small");
    assert!(
        steps.contains(&Step::Protected {
            workload: big,
            protection: Protection::PreemptedBefore
        }),
        "{steps:?}"
    );
    // Without the workload that replaced it, there is no loop any more.
    house.remove("higher");
    house.state.set_now(2_001);
    let small = house.state.workload("small").unwrap();
    let alone = WhatIf::new(&mut house.state)
        .nominate(small, Trace::off())
        .unwrap();
    assert_eq!(alone.victims.len(), 1);
}
