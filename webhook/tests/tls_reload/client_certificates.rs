//! Certificates of clients: accepted, rejected, and a changed CA.

use std::fs;
use std::path::PathBuf;

use hyper::StatusCode;
use lockkeeper_certs::tls::{ClientVerification, ServerTls, TlsError, TlsOptions};
use lockkeeper_testkit::{TestCa, replace_file};
use rustls::version::{TLS12, TLS13};

use crate::server::{CA, CERTIFICATE, EVENTS, KEY, Server};

#[tokio::test]
async fn client_signed_by_ca_is_accepted() {
    let ca = TestCa::new("clients");
    let server = Server::start_with_client_auth(&ca, &[], EVENTS).await;
    for version in [&TLS12, &TLS13] {
        let client = server.client(version, Some(&ca.client("client", &[])));
        for path in ["/validate", "/mutate", "/livez"] {
            let answer = server.request_status(&client, path).await;
            assert_eq!(answer, Some(StatusCode::OK), "{path}");
        }
    }
    assert_eq!(server.status.rejected_clients(), 0);
}

#[tokio::test]
async fn client_without_certificate_reaches_probes_only() {
    let ca = TestCa::new("clients");
    let server = Server::start_with_client_auth(&ca, &[], EVENTS).await;
    let client = server.client(&TLS13, None);
    for path in ["/livez", "/readyz"] {
        assert_eq!(
            server.request_status(&client, path).await,
            Some(StatusCode::OK)
        );
    }
    assert_eq!(server.status.rejected_clients(), 0);
    for path in ["/validate", "/mutate", "/livez/", "//validate", "/"] {
        let answer = server.request_status(&client, path).await;
        assert_eq!(answer, Some(StatusCode::FORBIDDEN), "{path}");
    }
    assert_eq!(server.status.rejected_clients(), 5);
}

#[tokio::test]
async fn foreign_or_expired_client_certificate_is_rejected() {
    let ca = TestCa::new("clients");
    // A CA with the same name is another CA.
    let other = TestCa::new("clients");
    let server = Server::start_with_client_auth(&ca, &[], EVENTS).await;
    let bad = [
        other.client("client", &[]),
        ca.sign("client", &[], true, -10..-1),
        ca.sign("client", &[], true, 1..2),
        ca.sign("client", &[], false, -10..1),
    ];
    let mut rejected = 0;
    for pair in &bad {
        for version in [&TLS12, &TLS13] {
            let client = server.client(version, Some(pair));
            assert_eq!(server.request_status(&client, "/validate").await, None);
            rejected += 1;
            assert_eq!(server.status.rejected_clients(), rejected);
        }
    }
}

#[tokio::test]
async fn client_name_matches_san_or_common_name() {
    let ca = TestCa::new("clients");
    let server =
        Server::start_with_client_auth(&ca, &["kube-apiserver", "API.example"], EVENTS).await;
    let request = async |common_name: &str, names: &[&str]| {
        let client = server.client(&TLS13, Some(&ca.client(common_name, names)));
        server.request_status(&client, "/validate").await
    };
    assert_eq!(request("kube-apiserver", &[]).await, Some(StatusCode::OK));
    let named = ["other", "api.EXAMPLE"];
    assert_eq!(request("other", &named).await, Some(StatusCode::OK));

    assert_eq!(request("other", &["other"]).await, None);
    assert_eq!(request("Kube-Apiserver", &[]).await, None);
    assert_eq!(request("kube-apiserver.evil", &["*.example"]).await, None);
    assert_eq!(server.status.rejected_clients(), 3);
}

#[tokio::test]
async fn client_ca_rotation_is_reloaded() {
    let (old, new) = (TestCa::new("old"), TestCa::new("new"));
    let server = Server::start_with_client_auth(&old, &[], EVENTS).await;
    // One configuration each, since a client with the same one would resume its session.
    let old_client = server.client(&TLS13, Some(&old.client("client", &[])));
    let new_client = server.client(&TLS13, Some(&new.client("client", &[])));
    let ok = Some(StatusCode::OK);
    assert_eq!(server.request_status(&old_client, "/validate").await, ok);
    assert_eq!(server.request_status(&new_client, "/validate").await, None);

    let file = server.path().join(CA);
    server
        .assert_failure_after(|| replace_file(&file, "no PEM"))
        .await;
    assert_eq!(server.request_status(&old_client, "/validate").await, ok);

    replace_file(&file, &format!("{}{}", old.pem(), new.pem()));
    server.until_reloads(1).await;
    assert_eq!(server.request_status(&old_client, "/validate").await, ok);
    assert_eq!(server.request_status(&new_client, "/validate").await, ok);

    replace_file(&file, new.pem());
    server.until_reloads(2).await;
    assert_eq!(server.request_status(&old_client, "/validate").await, None);
    assert_eq!(server.request_status(&new_client, "/validate").await, ok);
}

#[test]
fn invalid_client_ca_fails_at_start() {
    let directory = tempfile::tempdir().unwrap();
    TestCa::new("CA").server().write(directory.path());
    let file = |name| -> PathBuf { directory.path().join(name) };
    let load = || {
        let client = ClientVerification {
            ca: file(CA),
            names: vec![],
        };
        let options = TlsOptions::default();
        ServerTls::load(&file(CERTIFICATE), &file(KEY), &options, Some(&client)).unwrap_err()
    };
    assert!(matches!(load(), TlsError::Read { path, .. } if path == file(CA)));
    let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(file(CA), text).unwrap();
    assert!(matches!(load(), TlsError::InvalidCa { path } if path == file(CA)));
}
