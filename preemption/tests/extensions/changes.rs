//! Held quota and earlier nominations while a queue changes.

use crate::fixture::{Fixture, test_queue};
use lockkeeper_preemption::{Damping, Options, QueueSpec, Reservation};

#[test]
fn release_of_reservation_made_without_quota_frees_it_once() {
    let mut house = Fixture::new(Options::default(), &[test_queue("a", 4)]);
    house.add_admitted("it", "a", 0, 3);
    let id = house.state.workload("it").unwrap();
    let held = house.state.workload_view(id).reservation().unwrap();
    house.run_traced_cycle();
    house.state.remove_queue("a");
    let later = Reservation {
        reserved_at_s: held.reserved_at_s + 1,
        ..held
    };
    house.state.reserve(id, &later);
    house.set_queue(&test_queue("a", 4));
    let used = |house: &mut Fixture| {
        house.run_traced_cycle();
        let node = house.state.queue("a").unwrap();
        let usage = house.state.node_view(node).usage();
        usage.iter().map(|(_, amount)| amount.get()).sum::<i64>()
    };
    assert_eq!(used(&mut house), 3);
    house.remove("it");
    assert_eq!(used(&mut house), 0);
}

/// The earlier nomination has a flavor that the queue no longer has; the workload may not use the new one.
#[test]
fn nomination_ends_when_its_flavor_leaves_the_queue() {
    // With damping no nomination is reused.
    let options = Options {
        damping: Damping::Off,
        ..Options::default()
    };
    let mut house = Fixture::new(options, &[test_queue("a", 4)]);
    house.add_admitted("low", "a", 0, 4);
    let other = house.state.flavor("other");
    house.add_pending_without_flavor("high", "a", 1, 4, other);
    assert_eq!(house.run_cycle(), ["high preempts low"]);
    let spec = house.queue_spec(&test_queue("a", 4));
    let mut groups = spec.groups.clone();
    groups[0].flavors[0].flavor = other;
    house.state.set_queue(QueueSpec { groups, ..spec });
    // A traced cycle reuses no nomination.
    let cycle = house.state.next_cycle(house.now_s + 1, false);
    assert_eq!(house.describe_entry(&cycle.entries[0]), "high NoFit");
}

/// A workload out of scope becomes inadmissible with its class, before or after that of the others, and stays so (Kueue).
#[test]
fn workloads_out_of_scope_stay_inadmissible_with_their_class() {
    let mut house = Fixture::new(Options::default(), &[test_queue("a", 4)]);
    house.add_admitted("running", "a", 1, 4);
    house.add_pending("first", "a", 0, 4);
    house.add_pending_out_of_scope("second", "a", 0, 4);
    house.add_pending("third", "a", 0, 4);
    assert_eq!(house.run_cycle(), ["first NoCandidates"]);
    house.add_pending_out_of_scope("fourth", "a", 0, 4);
    let node = house.state.queue("a").unwrap();
    assert_eq!(house.state.node_view(node).pending_counts().queued, 4);
    assert!(house.state.node_view(node).active().is_empty());
    house.remove("running");
    let active: Vec<_> = ["first", "third"]
        .map(|it| house.state.workload(it).unwrap())
        .into();
    assert_eq!(house.state.node_view(node).active(), active);
    assert_eq!(house.state.node_view(node).pending_counts().queued, 4);
    house.remove("fourth");
    house.remove("first");
    assert_eq!(house.state.node_view(node).pending_counts().queued, 2);
}
