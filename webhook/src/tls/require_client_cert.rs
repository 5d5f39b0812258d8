//! Who may ask for a review: clients that came with a certificate.
//!
//! The handshake cannot insist on one, because a kubelet's probes have none. So
//! it refuses bad certificates, and what has none at all is refused here.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rustls::ServerConnection;
use tracing::info;

use super::CertificateStatus;

/// The paths for everybody: a kubelet has no certificate, and neither of these
/// says anything about an object. Other paths are closed, also those that are
/// yet to be made.
const UNAUTHENTICATED_PATHS: &[&str] = &["/livez", "/readyz"];

/// Who sent a request: an extension of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where the connection comes from.
    pub address: SocketAddr,
    /// Whether the client presented a certificate and it was accepted.
    pub has_certificate: bool,
}

impl Peer {
    /// The other end of a connection after the handshake. A certificate that is not
    /// accepted ends the handshake; one that is there was.
    pub(crate) fn from_connection(connection: &ServerConnection, address: SocketAddr) -> Self {
        Self {
            address,
            has_certificate: connection.peer_certificates().is_some(),
        }
    }
}

/// Closes all but the open paths of `router` to clients without a certificate.
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
    status.count_rejected_client();
    let address = peer.map(|peer| peer.address);
    info!(
        ?address,
        "refused a request: the client has no certificate, and --client-ca asks for one"
    );
    let text = "no client certificate; give the API server one for this webhook \
                (--admission-control-config-file, kubeConfigFile)\n";
    (StatusCode::FORBIDDEN, text).into_response()
}
