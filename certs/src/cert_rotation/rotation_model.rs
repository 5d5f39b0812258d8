//! Rotations with several replicas and API servers that observe changes late, crash and restart:
//! an API server always trusts every served certificate.
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

/// The longest time until every component observes a change, in seconds.
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
    let mut cluster = RotationCluster::new(replicas, targets, servers);
    if is_settled {
        for target in 0..targets {
            cluster.apply(&Action::Make(target));
        }
        cluster.settle();
    }
    for action in actions {
        cluster.apply(action);
        cluster.check();
    }
    for target in 0..targets {
        cluster.apply(&Action::Make(target));
    }
    cluster.settle();
    assert_eq!(cluster.settle(), 0, "writes go on where nothing changes");

    let stored = cluster.secret.last().unwrap();
    let contents = stored.state.contents.as_ref().unwrap();
    assert!(!stored.state.renewal_requested);
    assert_eq!(contents.cas().len(), 1);
    for replica in &cluster.replicas {
        assert_eq!(replica.active_contents.as_deref(), Some(&**contents));
        assert!(
            replica
                .issuer
                .names
                .iter()
                .all(|name| contents.has_name(name))
        );
    }
    for history in &cluster.targets {
        assert_eq!(
            history.last().unwrap().state,
            Some(ca_certificates(contents))
        );
    }
    let count = |is: fn(&Action) -> bool| actions.iter().filter(|action| is(action)).count();
    let renewals = count(|action| matches!(action, Action::Renew));
    let jumps = count(|action| matches!(action, Action::Jump(_)));
    // Created, both names, three steps and an acknowledgement a renewal, and as many a jump.
    let most = 3 + 4 * (renewals + jumps);
    assert!(
        cluster.secret_writes <= most,
        "{} writes of the Secret",
        cluster.secret_writes
    );
    let made = count(|action| matches!(action, Action::Make(_))) + targets;
    let most = made + targets * (most + 1);
    assert!(
        cluster.target_writes <= most,
        "{} writes of targets",
        cluster.target_writes
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
    let mut cluster = RotationCluster::new(2, 1, 1);
    cluster.apply(&make);
    cluster.settle();
    let first = Arc::clone(cluster.replicas[0].active_contents.as_ref().unwrap());
    cluster.apply(&renew);
    // Announced, injected, issued, retired, injected.
    assert_eq!(cluster.settle(), 5);
    let second = cluster.replicas[0].active_contents.as_ref().unwrap();
    assert_ne!(second.cas(), first.cas());
}

/// A cluster with two replicas: one has an in-flight write of a bundle to the target, and the other has
/// rotated the CA in the meantime.
fn cluster_with_late_bundle() -> RotationCluster {
    let mut cluster = RotationCluster::new(2, 1, 1);
    cluster.settle();
    cluster.apply(&Action::Make(0));
    cluster.apply(&Action::WatchTarget(1, 0));
    cluster.apply(&Action::Decide(1));
    assert!(matches!(
        cluster.replicas[1].pending_write,
        Some(PendingWrite::Target { .. })
    ));
    cluster.apply(&Action::Renew);
    for _ in 0..3 {
        cluster.apply(&Action::Run(0));
        cluster.apply(&Action::AdvanceTime(OVERLAP_S));
    }
    assert_eq!(
        cluster
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
    cluster
}

#[test]
fn late_bundle_write_does_not_replace_newer_bundle() {
    let mut cluster = cluster_with_late_bundle();
    let before = cluster.targets[0].len();
    cluster.apply(&Action::CommitWrite(1));
    assert_eq!(cluster.targets[0].len(), before);
    cluster.apply(&Action::Serve(0, 0));
    cluster.check();
}

#[test]
fn lagging_replica_injects_current_bundle() {
    let mut cluster = RotationCluster::new(2, 1, 1);
    cluster.apply(&Action::Make(0));
    cluster.settle();
    cluster.apply(&Action::Renew);
    cluster.apply(&Action::Run(0));
    // It has not observed the new CA, and observes a bundle that differs from its own.
    cluster.apply(&Action::WatchTarget(1, 0));
    cluster.apply(&Action::Decide(1));
    if let Some(PendingWrite::Target { bundle, .. }) = &cluster.replicas[1].pending_write {
        assert_eq!(bundle.len(), 2);
    } else {
        panic!("it wants to write the target");
    }
    let before = cluster.target_writes;
    cluster.apply(&Action::CommitWrite(1));
    cluster.apply(&Action::Run(0));
    assert_eq!(cluster.target_writes, before + 1);
}
