//! Shutdown: requests in flight are answered, and other connections are closed.

use std::sync::Arc;

use crate::server::{Client, H2, HTTP1, Sender, Server, closed};
use lockkeeper_webhook::listener::{ConnectionLimits, DrainReport};
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

use crate::SHORT;

#[tokio::test]
async fn shutdown_answers_in_flight_request() {
    for alpn in [HTTP1, H2] {
        let server = Server::default().await;
        let mut sender = server.connect(alpn).await;
        let request = tokio::spawn(async move {
            let answer = sender.get("/wait").await;
            sender.closed().await;
            answer
        });
        server.gate.wait_for_requests(1).await;
        let (gate, task) = server.stop().await;
        gate.open.notify_one();
        assert_eq!(request.await.unwrap().unwrap().2, "late");
        assert_eq!(task.await.unwrap(), DrainReport { connections_cut: 0 });
    }
}

#[tokio::test]
async fn shutdown_closes_idle_connections() {
    let server = Server::default().await;
    let mut senders = Vec::new();
    for alpn in [HTTP1, H2] {
        let mut sender = server.connect(alpn).await;
        sender.get("/").await.unwrap();
        senders.push(sender);
    }
    let (_, task) = server.stop().await;
    for sender in senders {
        sender.closed().await;
    }
    assert_eq!(task.await.unwrap(), DrainReport { connections_cut: 0 });
}

#[tokio::test]
async fn shutdown_answers_client_in_handshake() {
    for alpn in [HTTP1, H2] {
        let server = Server::default().await;
        let config = Arc::new(Client::new(alpn).config(&server.files));
        let tcp = server.tcp().await;
        // Accepted in order: when a later one is served, this one is accepted.
        server.assert_serves().await;
        let (_, task) = server.stop().await;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(config).connect(name, tcp).await.unwrap();
        let mut sender = Sender::connect(stream).await;
        assert_eq!(sender.get("/").await.unwrap().2, "fine");
        sender.closed().await;
        assert_eq!(task.await.unwrap(), DrainReport { connections_cut: 0 });
    }
}

#[tokio::test]
async fn shutdown_does_not_wait_for_silent_client() {
    let server = Server::default().await;
    let silent = [
        server.tls(Client::new(HTTP1)).await.unwrap(),
        server.tls(Client::new(H2)).await.unwrap(),
    ];
    let (_, task) = server.stop().await;
    let [http1, h2] = silent;
    closed(http1).await;
    drop(h2);
    assert_eq!(task.await.unwrap(), DrainReport { connections_cut: 0 });
}

#[tokio::test]
async fn shutdown_cuts_and_reports_stuck_connections() {
    let server = Server::with_limits(ConnectionLimits {
        drain_timeout: SHORT,
        ..ConnectionLimits::default()
    })
    .await;
    let mut senders = [server.connect(HTTP1).await, server.connect(H2).await];
    let [first, second] = &mut senders;
    let (first, second, drained) = tokio::join!(first.get("/never"), second.get("/never"), async {
        server.gate.wait_for_requests(2).await;
        let (_, task) = server.stop().await;
        task.await.unwrap()
    });
    assert!(first.is_err() && second.is_err());
    assert_eq!(drained, DrainReport { connections_cut: 2 });
}
