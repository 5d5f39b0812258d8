//! Rejects requests of clients without a certificate.
//!
//! The handshake cannot require a certificate, because a kubelet's probes have none. So it only rejects
//! invalid ones, and requests without any are rejected here.

use super::status::CertificateStatus;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rustls::ServerConnection;
use std::net::SocketAddr;
use tracing::info;

/// Paths that need no client certificate: a kubelet has none, and neither response contains anything
/// about an object. Every other path needs one, so that a new path is protected by default.
const UNAUTHENTICATED_PATHS: &[&str] = &["/livez", "/readyz"];

/// The client of a connection: an extension of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address of the client.
    pub address: SocketAddr,
    /// True if the client presented a certificate that was accepted.
    pub has_certificate: bool,
}

impl Peer {
    /// Returns the client of a connection after the handshake. The handshake fails for a certificate that
    /// is not accepted, so any certificate that is present was accepted.
    #[must_use]
    pub fn from_connection(connection: &ServerConnection, address: SocketAddr) -> Self {
        Self {
            address,
            has_certificate: connection.peer_certificates().is_some(),
        }
    }
}

/// Rejects requests without a client certificate, except those to [`UNAUTHENTICATED_PATHS`].
pub(super) fn require_client_cert(router: Router, status: CertificateStatus) -> Router {
    router.layer(middleware::from_fn_with_state(status, check_client_cert))
}

async fn check_client_cert(
    State(status): State<CertificateStatus>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>();
    let certified = peer.is_some_and(|peer| peer.has_certificate);
    if certified || UNAUTHENTICATED_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    if let Some(rejected) = status.count_rejected_client("no certificate") {
        let address = peer.map(|peer| peer.address);
        info!(
            ?address,
            rejected,
            "rejected a request: the client has no certificate, which --client-ca requires"
        );
    }
    let text = "no client certificate; give the API server one for this webhook \
                (--admission-control-config-file, kubeConfigFile)\n";
    (StatusCode::FORBIDDEN, text).into_response()
}
