//! Rotations with any number of replicas and API servers that hear of each other late, crash and
//! come back: what an API server trusts is always what a replica serves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

mod world;

use world::{Action, Pending, World, authorities};

/// How long a change is given to reach everybody, in seconds.
const OVERLAP_S: u64 = 600;

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..4_usize).prop_map(Action::Run),
        2 => (1..OVERLAP_S).prop_map(Action::Pass),
        3 => Just(Action::Pass(OVERLAP_S)),
        1 => (1..20_u64).prop_map(Action::Jump),
        4 => (0..4_usize).prop_map(Action::Watch),
        3 => (0..4_usize, 0..2_usize).prop_map(|(replica, target)| Action::WatchTarget(replica, target)),
        3 => (0..3_usize, 0..2_usize).prop_map(|(server, target)| Action::Serve(server, target)),
        8 => (0..4_usize).prop_map(Action::Decide),
        6 => (0..4_usize).prop_map(Action::Land),
        1 => (0..4_usize).prop_map(Action::Crash),
        2 => Just(Action::Renew),
        1 => (0..2_usize).prop_map(Action::Remove),
        2 => (0..2_usize).prop_map(Action::Make),
    ]
}

fn run([replicas, targets, servers]: [usize; 3], is_settled: bool, actions: &[Action]) {
    let mut world = World::new(replicas, targets, servers);
    if is_settled {
        for target in 0..targets {
            world.act(&Action::Make(target));
        }
        world.settle();
    }
    for action in actions {
        world.act(action);
        world.check();
    }
    for target in 0..targets {
        world.act(&Action::Make(target));
    }
    world.settle();
    assert_eq!(world.settle(), 0, "writes go on where nothing changes");

    let stored = world.secret.last().unwrap();
    let contents = stored.what.contents.as_ref().unwrap();
    assert!(!stored.what.asked);
    assert_eq!(contents.authorities().len(), 1);
    for replica in &world.replicas {
        assert_eq!(replica.held.as_deref(), Some(&**contents));
        assert!(
            replica
                .maker
                .names
                .iter()
                .all(|name| contents.has_name(name))
        );
    }
    for history in &world.targets {
        assert_eq!(history.last().unwrap().what, Some(authorities(contents)));
    }
    let count = |is: fn(&Action) -> bool| actions.iter().filter(|action| is(action)).count();
    let renewals = count(|action| matches!(action, Action::Renew));
    let jumps = count(|action| matches!(action, Action::Jump(_)));
    // Found, both names, three steps and an acknowledgement a renewal, and as much a jump.
    let most = 3 + 4 * (renewals + jumps);
    assert!(
        world.secret_writes <= most,
        "{} writes of the Secret",
        world.secret_writes
    );
    let made = count(|action| matches!(action, Action::Make(_))) + targets;
    let most = made + targets * (most + 1);
    assert!(
        world.target_writes <= most,
        "{} writes of targets",
        world.target_writes
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_served_is_trusted(
        replicas in 1..=4_usize,
        targets in 1..=2_usize,
        servers in 1..=3_usize,
        is_settled in any::<bool>(),
        actions in vec(action(), 0..120),
    ) {
        run([replicas, targets, servers], is_settled, &actions);
    }
}

#[test]
fn a_rotation_asked_for_is_completed() {
    let (make, renew) = (Action::Make(0), Action::Renew);
    let mut world = World::new(2, 1, 1);
    world.act(&make);
    world.settle();
    let first = Arc::clone(world.replicas[0].held.as_ref().unwrap());
    world.act(&renew);
    // Announced, told, issued, retired, told.
    assert_eq!(world.settle(), 5);
    let second = world.replicas[0].held.as_ref().unwrap();
    assert_ne!(second.authorities(), first.authorities());
}

/// A world of two replicas in which one has sent a bundle to the target and the other has rotated
/// the CA meanwhile, and who sent what.
fn with_a_late_bundle() -> World {
    let mut world = World::new(2, 1, 1);
    world.settle();
    world.act(&Action::Make(0));
    world.act(&Action::WatchTarget(1, 0));
    world.act(&Action::Decide(1));
    assert!(matches!(
        world.replicas[1].pending,
        Some(Pending::Target { .. })
    ));
    world.act(&Action::Renew);
    for _ in 0..3 {
        world.act(&Action::Run(0));
        world.act(&Action::Pass(OVERLAP_S));
    }
    assert_eq!(
        world
            .secret
            .last()
            .unwrap()
            .what
            .contents
            .as_ref()
            .unwrap()
            .authorities()
            .len(),
        1
    );
    world
}

#[test]
fn a_bundle_that_arrives_late_takes_the_place_of_none() {
    let mut world = with_a_late_bundle();
    let before = world.targets[0].len();
    world.act(&Action::Land(1));
    assert_eq!(world.targets[0].len(), before);
    world.act(&Action::Serve(0, 0));
    world.check();
}

#[test]
fn a_replica_that_lags_injects_what_the_secret_holds_now() {
    let mut world = World::new(2, 1, 1);
    world.act(&Action::Make(0));
    world.settle();
    world.act(&Action::Renew);
    world.act(&Action::Run(0));
    // It has not heard of the new CA, and sees a bundle that is not the one it knows.
    world.act(&Action::WatchTarget(1, 0));
    world.act(&Action::Decide(1));
    if let Some(Pending::Target { bundle, .. }) = &world.replicas[1].pending {
        assert_eq!(bundle.len(), 2);
    } else {
        panic!("it wants to write the target");
    }
    let before = world.target_writes;
    world.act(&Action::Land(1));
    world.act(&Action::Run(0));
    assert_eq!(world.target_writes, before + 1);
}
