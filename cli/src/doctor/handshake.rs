//! TLS handshakes with the servers of webhooks, verified as the API server does.

use lockkeeper_certs::tls::provider;
use lockkeeper_doctor::{Endpoint, Handshake, HandshakeError, Snapshot, certificate_end_s};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, Error as TlsError, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The limit of one handshake. Networks of pods are often closed from outside.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);

/// The most servers of one Service. Each replica can present another certificate.
const SERVERS_MAX: usize = 8;

/// The most handshakes in all.
const HANDSHAKES_MAX: usize = 256;

/// The outcomes with all servers of webhooks, in the order of [`Snapshot::endpoints`]. Without a CA bundle there is none.
pub(super) async fn handshakes(snapshot: &Snapshot) -> Vec<Handshake> {
    let endpoints = snapshot.endpoints().into_iter();
    let endpoints = endpoints.filter(|it| !it.ca_bundle.is_empty());
    let servers = endpoints.flat_map(|endpoint| {
        let addresses = snapshot.addresses(&endpoint).into_iter().take(SERVERS_MAX);
        addresses.map(move |address| (endpoint.clone(), address))
    });
    let mut tasks = JoinSet::new();
    for (at, (endpoint, (host, port))) in servers.take(HANDSHAKES_MAX).enumerate() {
        tasks.spawn(async move {
            let limited = timeout(HANDSHAKE_TIMEOUT, connect(&endpoint, &host, port)).await;
            let outcome = limited.unwrap_or_else(|_| {
                let limit = HANDSHAKE_TIMEOUT.as_secs();
                Err(HandshakeError::NotReachable(format!(
                    "no answer in {limit} s"
                )))
            });
            let address = format!("{host}:{port}");
            (
                at,
                Handshake {
                    endpoint,
                    address,
                    outcome,
                },
            )
        });
    }
    let mut done = tasks.join_all().await;
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, it)| it).collect()
}

/// The end of the certificate that a server presents.
async fn connect(endpoint: &Endpoint, host: &str, port: u16) -> Result<i64, HandshakeError> {
    let not_trusted = |reason: String| HandshakeError::NotTrusted(reason);
    let not_reachable = |error: std::io::Error| HandshakeError::NotReachable(error.to_string());
    let mut roots = RootCertStore::empty();
    let bundle = CertificateDer::pem_slice_iter(&endpoint.ca_bundle);
    roots.add_parsable_certificates(bundle.filter_map(Result::ok));
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| not_trusted(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name =
        ServerName::try_from(endpoint.host()).map_err(|error| not_trusted(error.to_string()))?;
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(not_reachable)?;
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.map_err(|error| {
        let inner = error.get_ref().and_then(|it| it.downcast_ref::<TlsError>());
        match inner {
            Some(TlsError::InvalidCertificate(reason)) => not_trusted(reason.to_string()),
            _ => not_reachable(error),
        }
    })?;
    let (_, session) = stream.get_ref();
    let certificates = session.peer_certificates().unwrap_or_default();
    let end = certificates.first().and_then(|it| certificate_end_s(it));
    end.ok_or_else(|| not_trusted("the certificate is damaged".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{handshakes, provider};
    use k8s_openapi::ByteString;
    use lockkeeper_doctor::{HandshakeError, Snapshot};
    use lockkeeper_testkit::TestCa;
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;
    use serde_json::json;
    use std::sync::Arc;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    /// A webhook with a CA bundle, whose only server listens on a port of localhost.
    fn snapshot(ca: &TestCa, port: u16) -> Snapshot {
        let mut snapshot = Snapshot::new();
        let client = json!({
            "caBundle": ByteString(ca.pem().as_bytes().to_vec()),
            "service": {"namespace": "hooks", "name": "hook"},
        });
        let metadata = json!({"namespace": "hooks", "name": "hook"});
        snapshot.add(json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "hook"},
            "webhooks": [{
                "name": "hook.example.com",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "clientConfig": client,
            }],
        }));
        snapshot.add(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"port": 443}]},
        }));
        let labels = json!({"kubernetes.io/service-name": "hook"});
        snapshot.add(json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"namespace": "hooks", "name": "hook-1", "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": port}],
            "endpoints": [{"addresses": ["127.0.0.1"]}],
        }));
        snapshot
    }

    /// A server whose certificate has these names; returns its port.
    async fn serve(ca: &TestCa, names: &[&str]) -> u16 {
        let pair = ca.sign("hook", names, false, -1..30);
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.der.clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // The client rejects some certificates.
                let _ = acceptor.accept(stream).await;
            }
        });
        port
    }

    async fn outcome(ca: &TestCa, port: u16) -> Result<i64, HandshakeError> {
        let mut done = handshakes(&snapshot(ca, port)).await;
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].address, format!("127.0.0.1:{port}"));
        done.remove(0).outcome
    }

    #[tokio::test]
    async fn certificates_are_verified_as_the_api_server_does() {
        let (ca, other) = (TestCa::new("ca"), TestCa::new("other"));
        let port = serve(&ca, &["hook.hooks.svc"]).await;
        let end = outcome(&ca, port).await.unwrap();
        assert!(end > 0, "{end}");

        let Err(HandshakeError::NotTrusted(reason)) = outcome(&other, port).await else {
            panic!("another authority is trusted");
        };
        assert!(
            reason.contains("UnknownIssuer") || reason.contains("issuer"),
            "{reason}"
        );

        let port = serve(&ca, &["other.hooks.svc"]).await;
        let Err(HandshakeError::NotTrusted(reason)) = outcome(&ca, port).await else {
            panic!("another name is accepted");
        };
        assert!(reason.contains("hook.hooks.svc"), "{reason}");
    }

    #[tokio::test]
    async fn closed_ports_say_nothing_about_the_certificate() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let outcome = outcome(&TestCa::new("ca"), port).await;
        assert!(
            matches!(outcome, Err(HandshakeError::NotReachable(_))),
            "{outcome:?}"
        );
    }
}
