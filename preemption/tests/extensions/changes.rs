//! Held quota while its queue changes.

use crate::fixture::{Fixture, test_queue};
use lockkeeper_preemption::{Options, Reservation};

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
