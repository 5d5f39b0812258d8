//! The certificates that servers present.

use super::certificates::time;
use crate::catalogue::{Check, SERVER_EXPIRES, UNTRUSTED_SERVER};
use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::snapshot::Snapshot;
use crate::webhook::Endpoint;

/// A certificate that expires earlier is reported, in seconds.
const SERVER_RENEWAL_S: i64 = 7 * 24 * 3600;

/// The outcome of a TLS handshake with one server behind a Service, verified as the API server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The Service.
    pub endpoint: Endpoint,
    /// The address and port of the server.
    pub address: String,
    /// When the certificate ends, in seconds since 1970.
    pub outcome: Result<i64, HandshakeError>,
}

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// No connection, or no answer. That says nothing about the server: its network may be closed from here.
    NotReachable(String),
    /// The certificate is not accepted, with the reason.
    NotTrusted(String),
}

pub(crate) fn check(
    snapshot: &Snapshot,
    handshakes: &[Handshake],
    now_s: i64,
    out: &mut Diagnosis,
) {
    for endpoint in snapshot.endpoints() {
        let service = format!(
            "Service/{}/{}",
            endpoint.service.namespace, endpoint.service.name
        );
        let own = handshakes.iter().filter(|it| it.endpoint == endpoint);
        let own: Vec<&Handshake> = own.collect();
        if own.is_empty() {
            out.skip(format!(
                "the certificate that {service} presents: no server of it is known"
            ));
        }
        for handshake in own {
            let mut report = |check: &'static Check, evidence: String| {
                out.findings.push(Finding {
                    check,
                    object: service.clone(),
                    field: "spec.ports".to_owned(),
                    evidence: format!("the server at {}: {evidence}", handshake.address),
                });
            };
            match &handshake.outcome {
                Ok(end) if *end <= now_s.saturating_add(SERVER_RENEWAL_S) => {
                    report(&SERVER_EXPIRES, format!("its certificate expires at {}", time(*end)));
                }
                Ok(_) => {}
                Err(HandshakeError::NotTrusted(reason)) => report(&UNTRUSTED_SERVER, reason.clone()),
                Err(HandshakeError::NotReachable(reason)) => out.skip(format!(
                    "the certificate that {service} presents: {} is not reachable from here ({reason})",
                    handshake.address
                )),
            }
        }
    }
}
