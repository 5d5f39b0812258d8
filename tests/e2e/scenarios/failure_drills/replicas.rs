//! Replicas are updated, killed and restarted.

use super::fixture::DrillFixture;
use crate::fixture::{DEFAULTS, Fixture};
use crate::lockkeeper::Protocol;
use crate::wait;

/// Unready for a second before it closes: ten probes of the balancer. In a pod it is five seconds.
const SHUTDOWN_DELAY: &str = "webhook: {shutdownDelaySeconds: 1}\n";

/// A rolling update as a Deployment does it with `maxSurge: 1, maxUnavailable: 0`.
pub fn updated(stage: &mut Fixture, protocol: Protocol) {
    let mut site = DrillFixture::open(stage, protocol, SHUTDOWN_DELAY, 2);
    let load = site.load();
    load.wait_for_requests();
    for _ in 0..2 {
        site.add_replica();
        site.balancer.wait_ready(&site.ports());
        let old = site.replicas.remove(0);
        old.stop().unwrap_or_else(|e| panic!("{e}"));
        load.wait_for_requests();
    }
    assert!(connections(&site) > 0, "the new replicas got no request");
    let counts = load.finish(&site.title("two replicas updated in turn"));
    assert_eq!((counts.unexpected, counts.without_response), (0, 0));
}

/// Requests in flight at a killed replica are lost; later requests are not.
pub fn killed(stage: &mut Fixture, protocol: Protocol) {
    let mut site = DrillFixture::open(stage, protocol, DEFAULTS, 2);
    let load = site.load();
    load.wait_for_requests();
    let victim = site.replicas.remove(replica_with_most_connections(&site));
    let port = victim.port();
    let answered = load.counts().sent;
    drop(victim);
    // Until the API server has seen its connections break, it may use them for one more request.
    let gone = || Ok((site.balancer.connections_to(port) == 0).then_some(()));
    wait::until(gone, || "broken connections stay open".to_owned()).unwrap();
    let concerned = load.requests_started() - answered;
    site.balancer.wait_ready(&site.ports());
    // The requests that were in flight have failed by now.
    load.paused_while(|| {});
    let lost = load.counts().without_response;
    load.wait_for_requests();
    let counts = load.finish(&site.title("one of two replicas killed"));
    println!("  under way between the kill and the end of its connections: {concerned}");
    assert_eq!(counts.unexpected, 0);
    assert_eq!(
        counts.without_response, lost,
        "lost when the replica was out"
    );
    assert!(lost <= concerned, "lost {lost}");
}

/// Without a replica no object is accepted; afterwards requests succeed again.
pub fn restarted(stage: &mut Fixture, protocol: Protocol) {
    let mut site = DrillFixture::open(stage, protocol, DEFAULTS, 1);
    let load = site.load();
    load.wait_for_requests();
    let old = site.replicas.remove(0);
    load.unavailable_while(|| {
        old.stop().unwrap_or_else(|e| panic!("{e}"));
        load.wait_for_unavailable();
        site.add_replica();
        site.balancer.wait_ready(&site.ports());
    });
    load.wait_for_requests();
    let counts = load.finish(&site.title("the only replica restarted"));
    assert_eq!((counts.unexpected, counts.without_response), (0, 0));
    assert!(counts.unavailable > 0);
}

fn connections(site: &DrillFixture<'_>) -> usize {
    let ports = site.ports();
    ports
        .iter()
        .map(|port| site.balancer.connections_to(*port))
        .sum()
}

/// The position of the replica with the most connections.
fn replica_with_most_connections(site: &DrillFixture<'_>) -> usize {
    let ports = site.ports();
    let connections = |at: &usize| site.balancer.connections_to(ports[*at]);
    (0..ports.len())
        .max_by_key(connections)
        .expect("there are replicas")
}
