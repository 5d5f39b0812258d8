//! Readiness: the self-check, and the order of the steps of a shutdown.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

#[allow(dead_code, reason = "shared with the tests of limits")]
mod support;

use hyper::StatusCode;
use lockkeeper_certs::self_signed;
use lockkeeper_kube_support::health::Health;
use lockkeeper_webhook::listener::DrainReport;
use lockkeeper_webhook::readiness::{SelfCheck, SelfCheckError, SelfCheckTrust};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use support::{H2, HTTP1, Webhook, WebhookOptions, post, wait_until, workload};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Longer than any test.
const FOREVER: Duration = Duration::from_hours(1);

fn self_check(webhook: &Webhook, name: &str, trust: SelfCheckTrust) -> SelfCheck {
    SelfCheck {
        address: webhook.address,
        name: ServerName::try_from(name.to_owned()).unwrap(),
        trust,
        interval: Duration::from_secs(10),
        timeout: Duration::from_secs(5),
    }
}

#[tokio::test]
async fn server_is_ready_when_self_check_succeeds() {
    let webhook = Webhook::start(WebhookOptions {
        health: Health::unchecked(),
        ..WebhookOptions::default()
    })
    .await;
    let answer = webhook.get(H2, "/readyz").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.body, "not ready: self-check: not checked yet\n");

    let trust = SelfCheckTrust::Ca(webhook.files.ca.clone());
    let check = self_check(&webhook, "localhost", trust);
    let watching = tokio::spawn(check.run_periodically(Arc::clone(&webhook.health)));
    wait_until(|| webhook.health.problems().is_empty()).await;
    let answer = webhook.get(HTTP1, "/readyz").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (StatusCode::OK, "ok\n")
    );
    watching.abort();
}

#[tokio::test]
async fn wrong_ca_or_name_makes_unready() {
    let webhook = Webhook::start(WebhookOptions::default()).await;
    let directory = tempfile::tempdir().unwrap();
    let names = ["localhost".to_owned()];
    let private = directory.path().join("tls");
    let other = self_signed::ensure(&private, &names, SystemTime::now()).unwrap();

    let cases = [
        ("localhost", SelfCheckTrust::Ca(other.ca), "no handshake: "),
        (
            "example.com",
            SelfCheckTrust::Ca(webhook.files.ca.clone()),
            "no handshake: ",
        ),
        (
            "localhost",
            SelfCheckTrust::Ca(directory.path().join("lost")),
            "cannot read ",
        ),
    ];
    for (name, trust, reason) in cases {
        let check = self_check(&webhook, name, trust);
        let error = check.run().await.unwrap_err();
        assert!(error.to_string().starts_with(reason), "{error}");

        let watching = tokio::spawn(check.run_periodically(Arc::clone(&webhook.health)));
        wait_until(|| !webhook.health.problems().is_empty()).await;
        let answer = webhook.get(H2, "/readyz").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        let prefix = format!("not ready: self-check: {reason}");
        assert!(answer.body.starts_with(&prefix), "{}", answer.body);
        watching.abort();

        // The next case trusts the certificate again, which makes the server ready.
        let good = SelfCheckTrust::Ca(webhook.files.ca.clone());
        let good = self_check(&webhook, "localhost", good);
        let watching = tokio::spawn(good.run_periodically(Arc::clone(&webhook.health)));
        wait_until(|| webhook.health.problems().is_empty()).await;
        watching.abort();
    }
}

#[tokio::test]
async fn changed_ca_bundle_triggers_self_check() {
    let webhook = Webhook::start(WebhookOptions {
        health: Health::unchecked(),
        ..WebhookOptions::default()
    })
    .await;
    let read = |path| CertificateDer::from_pem_file(path).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let names = ["localhost".to_owned()];
    let private = directory.path().join("tls");
    let other = self_signed::ensure(&private, &names, SystemTime::now()).unwrap();

    let (bundle, held) = watch::channel(None);
    let check = self_check(&webhook, "localhost", SelfCheckTrust::Bundle(held));
    let error = check.run().await.unwrap_err();
    assert!(matches!(error, SelfCheckError::NoCa), "{error}");
    let watching = tokio::spawn(check.run_periodically(Arc::clone(&webhook.health)));
    let reports = |part: &'static str| {
        let health = Arc::clone(&webhook.health);
        move || {
            health
                .problems()
                .iter()
                .any(|problem| problem.contains(part))
        }
    };
    wait_until(reports("there is no CA yet")).await;
    bundle.send_replace(Some([read(&other.ca)].into()));
    wait_until(reports("no handshake")).await;
    let both = [read(&other.ca), read(&webhook.files.ca)];
    bundle.send_replace(Some(both.into()));
    wait_until(|| webhook.health.problems().is_empty()).await;
    watching.abort();
}

#[tokio::test]
async fn unknown_ca_requires_only_a_handshake() {
    let webhook = Webhook::start(WebhookOptions::default()).await;
    let check = self_check(&webhook, "example.com", SelfCheckTrust::Any);
    check.run().await.unwrap();

    // A listener that closes every connection.
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let check = SelfCheck { address, ..check };
    let (outcome, ()) = tokio::join!(check.run(), async { drop(tcp.accept().await.unwrap()) });
    assert!(matches!(outcome, Err(SelfCheckError::Handshake(_))));
    drop(tcp);
    assert!(matches!(
        check.run().await,
        Err(SelfCheckError::Handshake(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn silent_listener_makes_unready() {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let check = SelfCheck {
        address: tcp.local_addr().unwrap(),
        name: ServerName::try_from("localhost").unwrap(),
        trust: SelfCheckTrust::Any,
        interval: FOREVER,
        timeout: FOREVER,
    };
    let outcome = check.run().await;
    assert!(matches!(outcome, Err(SelfCheckError::Timeout(FOREVER))));
}

#[tokio::test]
async fn stopping_server_is_unready_and_serves_until_closed() {
    let webhook = Webhook::start(WebhookOptions {
        delay: FOREVER,
        ..WebhookOptions::default()
    })
    .await;
    assert_eq!(webhook.get(H2, "/readyz").await.status, StatusCode::OK);
    let answer = webhook.post(HTTP1, "/mutate", workload("early", 0)).await;
    assert!(answer.headers.get("connection").is_none());
    webhook.stop.notify_one();
    wait_until(|| webhook.health.is_stopping()).await;
    for alpn in [HTTP1, H2] {
        let answer = webhook.get(alpn, "/readyz").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.body, "not ready: stopping\n");
        assert_eq!(webhook.get(alpn, "/livez").await.status, StatusCode::OK);
        // New connections and new requests are still served.
        let answer = webhook.post(alpn, "/mutate", workload("late", 0)).await;
        assert_eq!(answer.review()["uid"], "late");
        // HTTP/2 has GOAWAY for this.
        let parts = answer
            .headers
            .get("connection")
            .is_some_and(|it| it == "close");
        assert_eq!(parts, alpn == HTTP1);
    }
    assert!(!webhook.task.is_finished());
}

#[tokio::test]
async fn shutdown_after_delay_answers_accepted_requests() {
    let webhook = Webhook::start(WebhookOptions {
        delay: Duration::from_millis(100),
        ..WebhookOptions::default()
    })
    .await;
    let idle = webhook.tls(HTTP1).await;
    webhook.stop.notify_one();
    while TcpStream::connect(webhook.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(
        webhook.health.is_stopping(),
        "unready before the door closes"
    );
    let answer = Webhook::send_over(HTTP1, idle, post("/mutate", workload("late", 0))).await;
    assert_eq!(answer.unwrap().review()["uid"], "late");
    assert_eq!(
        webhook.task.await.unwrap(),
        DrainReport { connections_cut: 0 }
    );
}
