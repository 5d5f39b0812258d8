//! Rotations with any number of replicas and API servers that hear of each other late, crash and
//! come back: what an API server trusts is always what a replica serves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

mod cluster;

use cluster::{Action, PendingWrite, RotationCluster, ca_certificates};

/// How long a change is given to reach everybody, in seconds.
const OVERLAP_S: u64 = 600;

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0..4_usize).prop_map(Action::Run),
        2 => (1..OVERLAP_S).prop_map(Action::AdvanceTime),
        3 => Just(Action::AdvanceTime(OVERLAP_S)),
        1 => (1..20_u64).prop_map(Action::Jump),
        4 => (0..4_usize).prop_map(Action::Watch),
        3 => (0..4_usize, 0..2_usize).prop_map(|(replica, target)| Action::WatchTarget(replica, target)),
        3 => (0..3_usize, 0..2_usize).prop_map(|(server, target)| Action::Serve(server, target)),
        8 => (0..4_usize).prop_map(Action::Decide),
        6 => (0..4_usize).prop_map(Action::CommitWrite),
        1 => (0..4_usize).prop_map(Action::Crash),
        2 => Just(Action::Renew),
        1 => (0..2_usize).prop_map(Action::Remove),
        2 => (0..2_usize).prop_map(Action::Make),
    ]
}

fn run([replicas, targets, servers]: [usize; 3], is_settled: bool, actions: &[Action]) {
    let mut world = RotationCluster::new(replicas, targets, servers);
    if is_settled {
        for target in 0..targets {
            world.apply(&Action::Make(target));
        }
        world.settle();
    }
    for action in actions {
        world.apply(action);
        world.check();
    }
    for target in 0..targets {
        world.apply(&Action::Make(target));
    }
    world.settle();
    assert_eq!(world.settle(), 0, "writes go on where nothing changes");

    let stored = world.secret.last().unwrap();
    let contents = stored.state.contents.as_ref().unwrap();
    assert!(!stored.state.renewal_requested);
    assert_eq!(contents.cas().len(), 1);
    for replica in &world.replicas {
        assert_eq!(replica.active_contents.as_deref(), Some(&**contents));
        assert!(
            replica
                .issuer
                .names
                .iter()
                .all(|name| contents.has_name(name))
        );
    }
    for history in &world.targets {
        assert_eq!(
            history.last().unwrap().state,
            Some(ca_certificates(contents))
        );
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
    fn served_certificate_is_always_trusted(
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
fn requested_rotation_completes() {
    let (make, renew) = (Action::Make(0), Action::Renew);
    let mut world = RotationCluster::new(2, 1, 1);
    world.apply(&make);
    world.settle();
    let first = Arc::clone(world.replicas[0].active_contents.as_ref().unwrap());
    world.apply(&renew);
    // Announced, told, issued, retired, told.
    assert_eq!(world.settle(), 5);
    let second = world.replicas[0].active_contents.as_ref().unwrap();
    assert_ne!(second.cas(), first.cas());
}

/// A world of two replicas in which one has sent a bundle to the target and the other has rotated
/// the CA meanwhile, and who sent what.
fn cluster_with_late_bundle() -> RotationCluster {
    let mut world = RotationCluster::new(2, 1, 1);
    world.settle();
    world.apply(&Action::Make(0));
    world.apply(&Action::WatchTarget(1, 0));
    world.apply(&Action::Decide(1));
    assert!(matches!(
        world.replicas[1].pending_write,
        Some(PendingWrite::Target { .. })
    ));
    world.apply(&Action::Renew);
    for _ in 0..3 {
        world.apply(&Action::Run(0));
        world.apply(&Action::AdvanceTime(OVERLAP_S));
    }
    assert_eq!(
        world
            .secret
            .last()
            .unwrap()
            .state
            .contents
            .as_ref()
            .unwrap()
            .cas()
            .len(),
        1
    );
    world
}

#[test]
fn late_bundle_write_does_not_replace_newer_bundle() {
    let mut world = cluster_with_late_bundle();
    let before = world.targets[0].len();
    world.apply(&Action::CommitWrite(1));
    assert_eq!(world.targets[0].len(), before);
    world.apply(&Action::Serve(0, 0));
    world.check();
}

#[test]
fn lagging_replica_injects_current_bundle() {
    let mut world = RotationCluster::new(2, 1, 1);
    world.apply(&Action::Make(0));
    world.settle();
    world.apply(&Action::Renew);
    world.apply(&Action::Run(0));
    // It has not heard of the new CA, and sees a bundle that is not the one it knows.
    world.apply(&Action::WatchTarget(1, 0));
    world.apply(&Action::Decide(1));
    if let Some(PendingWrite::Target { bundle, .. }) = &world.replicas[1].pending_write {
        assert_eq!(bundle.len(), 2);
    } else {
        panic!("it wants to write the target");
    }
    let before = world.target_writes;
    world.apply(&Action::CommitWrite(1));
    world.apply(&Action::Run(0));
    assert_eq!(world.target_writes, before + 1);
}
