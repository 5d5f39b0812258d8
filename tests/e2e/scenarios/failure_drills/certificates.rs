//! The serving certificate changes to a valid and to an invalid one.

use super::fixture::DrillFixture;
use crate::fixture::{DEFAULTS, Fixture};
use crate::handshake_client::HandshakeClient;
use crate::load::Load;
use crate::lockkeeper::Protocol;
use crate::wait;

/// The metric for rejected certificate files.
const REJECTED_RELOADS: &str = r#"certificate_reloads_total{result="rejected"}"#;

/// New connections get the new certificate, open ones continue, and the API server accepts both.
pub fn rotated(stage: &mut Fixture, protocol: Protocol) {
    let mut site = DrillFixture::open(stage, protocol, DEFAULTS, 1);
    let load = site.load();
    let dialler = dial(&site);
    load.wait_for_requests();
    let mut last = None;
    for _ in 0..2 {
        let pair = site.rotate();
        dialler.wait_for(&pair.der);
        // On connections that started with the old certificate.
        load.wait_for_requests();
        with_new_connections(&site, &load);
        last = Some(pair);
    }
    dialler.finish(&last.expect("it was rotated").der);
    finish(&site, load, "certificate rotated twice");
}

/// Unusable files change nothing; repaired files are loaded.
pub fn broken(stage: &mut Fixture, protocol: Protocol) {
    let mut site = DrillFixture::open(stage, protocol, DEFAULTS, 1);
    let served = site.rotate();
    let load = site.load();
    let dialler = dial(&site);
    dialler.wait_for(&served.der);

    let other = site.authority.server();
    for (certificate, key) in [
        ("no certificate", "no key"),
        (&other.certificate, &served.key),
    ] {
        let failures = site.replicas[0].metric(REJECTED_RELOADS);
        site.volume.write(certificate, key);
        let counted = || Ok((site.replicas[0].metric(REJECTED_RELOADS) > failures).then_some(()));
        wait::until(counted, || "no failure is counted".to_owned()).unwrap();
        with_new_connections(&site, &load);
        dialler.wait_for(&served.der);
    }
    let repaired = site.rotate();
    dialler.wait_for(&repaired.der);
    with_new_connections(&site, &load);
    dialler.finish(&repaired.der);
    finish(&site, load, "certificate broken twice, then repaired");
}

fn dial(site: &DrillFixture<'_>) -> HandshakeClient {
    HandshakeClient::start(site.replicas[0].port(), &site.volume.ca(), site.protocol)
}

/// Makes the API server open new connections under load.
#[track_caller]
fn with_new_connections(site: &DrillFixture<'_>, load: &Load) {
    let before = site.balancer.connections_total();
    site.renew_connections(load);
    load.wait_for_requests();
    assert!(
        site.balancer.connections_total() > before,
        "no new connection"
    );
}

#[track_caller]
fn finish(site: &DrillFixture<'_>, load: Load, name: &str) {
    let counts = load.finish(&site.title(name));
    assert_eq!((counts.unexpected, counts.without_response), (0, 0));
}
