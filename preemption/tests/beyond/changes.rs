//! Quota that is held while its queue changes.

use crate::house::{House, team};
use lockkeeper_preemption::{Options, Reservation};

#[test]
fn what_is_reserved_while_a_queue_has_no_quota_is_given_back_once() {
    let mut house = House::new(Options::default(), &[team("a", 4)]);
    house.runs("it", "a", 0, 3);
    let id = house.state.workload("it").unwrap();
    let held = house.state.held_by(id).unwrap();
    house.traced();
    house.state.remove_queue("a");
    let later = Reservation {
        reserved_at_s: held.reserved_at_s + 1,
        ..held
    };
    house.state.reserve(id, &later);
    house.set(&team("a", 4));
    let used = |house: &mut House| {
        house.traced();
        let node = house.state.queue("a").unwrap();
        let usage = house.state.usage(node);
        usage.iter().map(|(_, amount)| amount.get()).sum::<i64>()
    };
    assert_eq!(used(&mut house), 3);
    house.is_gone("it");
    assert_eq!(used(&mut house), 0);
}
