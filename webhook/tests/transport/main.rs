//! The server's transport over real sockets: TLS, HTTP, faulty clients, shutdown.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

#[allow(dead_code, reason = "shared with the tests of HTTP/2")]
#[path = "../support/frames.rs"]
mod frames;
#[path = "../support/log.rs"]
mod log;
#[allow(dead_code, reason = "shared with the tests of HTTP/2")]
#[path = "../support/server.rs"]
mod server;
mod shutdown;

use std::time::Duration;

use axum::body::Body;
use frames::{
    CONTINUATION, END_HEADERS, END_STREAM, GET, HEADERS, INITIAL_WINDOW_SIZE, frame, preface,
};
use hyper::{Request, StatusCode, Version};
use lockkeeper_api::config::MinimumTls;
use lockkeeper_certs::tls::TlsOptions;
use lockkeeper_webhook::listener::{ConnectionLimits, DrainReport};
use log::Log;
use rustls::crypto::aws_lc_rs;
use rustls::version::TLS12;
use rustls::{NamedGroup, ProtocolVersion};
use server::{BOTH, Client, H2, HTTP1, Sender, Server, closed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A timeout that the test exceeds. Long enough for correct clients, also on a busy machine.
const SHORT: Duration = Duration::from_millis(500);

#[tokio::test]
async fn tls_1_3_serves_http2_and_http1() {
    let server = Server::default().await;
    for (alpn, version) in [
        (BOTH, Version::HTTP_2),
        (HTTP1, Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let stream = server.tls(Client::new(alpn)).await.unwrap();
        let protocol = stream.get_ref().1.protocol_version();
        assert_eq!(protocol, Some(ProtocolVersion::TLSv1_3));
        let mut sender = Sender::connect(stream).await;
        for _ in 0..2 {
            let answer = sender.get("/").await.unwrap();
            assert_eq!(answer, (version, StatusCode::OK, "fine".to_owned()));
        }
    }
}

#[tokio::test]
async fn http2_is_rejected_if_only_http1_is_offered() {
    let options = TlsOptions {
        http1_only: true,
        ..TlsOptions::default()
    };
    let server = Server::start(options, ConnectionLimits::default()).await;
    assert!(server.tls(Client::new(H2)).await.is_err());
    let (version, ..) = server.connect(BOTH).await.get("/").await.unwrap();
    assert_eq!(version, Version::HTTP_11);

    // Nor without negotiation: the preface of HTTP/2, and no ALPN.
    let mut stream = server.tls(Client::new(&[])).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(&[0, 0]), "no SETTINGS frame");
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn tls_1_2_is_rejected_unless_allowed() {
    let old = || Client {
        version: &TLS12,
        ..Client::new(BOTH)
    };
    let server = Server::default().await;
    assert!(server.tls(old()).await.is_err());
    server.assert_serves().await;

    let options = TlsOptions {
        minimum: MinimumTls::V1_2,
        ..TlsOptions::default()
    };
    let server = Server::start(options, ConnectionLimits::default()).await;
    let stream = server.tls(old()).await.unwrap();
    let protocol = stream.get_ref().1.protocol_version();
    assert_eq!(protocol, Some(ProtocolVersion::TLSv1_2));
    Sender::connect(stream).await.get("/").await.unwrap();
    server.assert_serves().await;
}

#[tokio::test]
async fn a_post_quantum_client_is_served() {
    let server = Server::default().await;
    let mut client = Client::new(BOTH);
    client.provider.kx_groups = vec![aws_lc_rs::kx_group::X25519MLKEM768];
    let stream = server.tls(client).await.unwrap();
    let group = stream.get_ref().1.negotiated_key_exchange_group().unwrap();
    assert_eq!(group.name(), NamedGroup::X25519MLKEM768);
}

#[tokio::test]
async fn invalid_clients_do_not_affect_others() {
    let server = Server::default().await;
    let garbage = [0xff; 4096];
    let plain = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for bytes in [&garbage[..], &plain[..]] {
        let mut stream = server.tcp().await;
        // The server may close during this write.
        let _ = stream.write_all(bytes).await;
        closed(stream).await;
        server.assert_serves().await;
    }
    drop(server.tcp().await);
    let mut stream = server.tls(Client::new(BOTH)).await.unwrap();
    let _ = stream.write_all(&garbage).await;
    closed(stream).await;
    server.assert_serves().await;
}

#[tokio::test]
async fn connections_over_share_of_peer_are_closed() {
    let server = Server::with_limits(ConnectionLimits {
        connections_per_peer_max: 2,
        ..ConnectionLimits::default()
    })
    .await;
    let first = server.tls(Client::new(BOTH)).await.unwrap();
    let second = server.tls(Client::new(BOTH)).await.unwrap();
    closed(server.tcp().await).await;
    assert!(server.tls(Client::new(BOTH)).await.is_err());
    drop((first, second));
    // The share is returned when the server has noticed the end of a connection.
    while server.tls(Client::new(BOTH)).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn hanging_handshake_times_out() {
    let server = Server::with_limits(ConnectionLimits {
        handshake_timeout: SHORT,
        ..ConnectionLimits::default()
    })
    .await;
    let silent = server.tcp().await;
    let mut halfway = server.tcp().await;
    // The start of a ClientHello; the rest is never sent.
    halfway
        .write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252])
        .await
        .unwrap();
    server.assert_serves().await;
    closed(silent).await;
    closed(halfway).await;
    server.assert_serves().await;
}

#[tokio::test]
async fn client_without_request_is_disconnected() {
    let server = Server::with_limits(ConnectionLimits {
        header_timeout: SHORT,
        drain_timeout: SHORT,
        ..ConnectionLimits::default()
    })
    .await;
    for alpn in [HTTP1, H2] {
        closed(server.tls(Client::new(alpn)).await.unwrap()).await;
    }
    let mut slow = server.tls(Client::new(HTTP1)).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nhost: loc")
        .await
        .unwrap();
    closed(slow).await;
    server.assert_serves().await;
}

#[tokio::test]
async fn idle_connection_is_closed_gracefully() {
    let server = Server::with_limits(ConnectionLimits {
        idle_timeout: SHORT,
        ..ConnectionLimits::default()
    })
    .await;
    for alpn in [HTTP1, H2] {
        let mut sender = server.connect(alpn).await;
        sender.get("/").await.unwrap();
        sender.closed().await;
    }
}

#[tokio::test]
async fn slow_response_does_not_count_as_idle() {
    let server = Server::with_limits(ConnectionLimits {
        idle_timeout: SHORT,
        ..ConnectionLimits::default()
    })
    .await;
    for alpn in [HTTP1, H2] {
        let mut sender = server.connect(alpn).await;
        let (answer, ()) = tokio::join!(sender.get("/wait"), async {
            server.gate.wait_for_requests(1).await;
            // Another connection runs into the limit meanwhile.
            let mut idle = server.connect(alpn).await;
            idle.get("/").await.unwrap();
            idle.closed().await;
            server.gate.open.notify_one();
        });
        assert_eq!(answer.unwrap().2, "late");
    }
}

#[tokio::test]
async fn connection_over_limit_waits_for_free_slot() {
    Log::enable();
    let server = Server::with_limits(ConnectionLimits {
        connections_max: 1,
        ..ConnectionLimits::default()
    })
    .await;
    let mut first = server.connect(H2).await;
    let first = tokio::spawn(async move {
        first.get("/wait").await.unwrap();
        drop(first);
    });
    server.gate.wait_for_requests(1).await;
    let ((), ()) = tokio::join!(server.assert_serves(), async {
        // The kernel accepts the second one; the server does not handle it.
        tokio::task::yield_now().await;
        assert!(!first.is_finished());
        server.gate.open.notify_one();
    });
    first.await.unwrap();
}

#[tokio::test]
async fn connection_limit_log_is_throttled() {
    for (log_interval, often) in [(Duration::MAX, false), (Duration::ZERO, true)] {
        let (log, _guard) = Log::take();
        let server = Server::with_limits(ConnectionLimits {
            connections_max: 1,
            log_interval,
            ..ConnectionLimits::default()
        })
        .await;
        // Each needs the only permit, and is served when the one before it has ended.
        for _ in 0..3 {
            server.connect(HTTP1).await.get("/").await.unwrap();
        }
        let lines = log.count_lines("every place is taken");
        assert!(lines >= 1);
        assert_eq!(lines > 1, often, "{lines} lines");
        let full = log.count_lines("connections_max=1");
        assert_eq!(full, lines);
    }
}

#[tokio::test]
async fn slow_head_closes_connection() {
    let server = Server::default().await;
    let mut other = server.connect(H2).await;
    other.get("/").await.unwrap();

    // A field without indexing: its name is `a`, its value 100 bytes.
    let field = [&b"\0\x01a\x64"[..], &[b'x'; 100]].concat();
    let mut stream = server.tls(Client::new(H2)).await.unwrap();
    let mut begin = preface(&[]);
    begin.extend(frame(HEADERS, END_STREAM, 1, GET));
    stream.write_all(&begin).await.unwrap();
    // The server closes at some point; later writes fail.
    let unbounded = frame(CONTINUATION, 0, 1, &field.repeat(100));
    while stream.write_all(&unbounded).await.is_ok() {}

    assert_eq!(other.get("/").await.unwrap().2, "fine");
    server.assert_serves().await;
}

#[tokio::test]
async fn client_not_reading_response_is_disconnected() {
    let server = Server::with_limits(ConnectionLimits {
        answer_timeout: SHORT,
        ..ConnectionLimits::default()
    })
    .await;
    let mut bytes = preface(&[(INITIAL_WINDOW_SIZE, 0)]);
    bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, 1, GET));
    let mut stream = server.tls(Client::new(H2)).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    closed(stream).await;
    server.assert_serves().await;
}

#[tokio::test]
async fn slow_response_does_not_count_as_unread() {
    let server = Server::with_limits(ConnectionLimits {
        answer_timeout: SHORT,
        ..ConnectionLimits::default()
    })
    .await;
    let mut sender = server.connect(H2).await;
    let (answer, ()) = tokio::join!(sender.get("/wait"), async {
        server.gate.wait_for_requests(1).await;
        // Another connection runs into the limit meanwhile.
        let mut bytes = preface(&[(INITIAL_WINDOW_SIZE, 0)]);
        bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, 1, GET));
        let mut stream = server.tls(Client::new(H2)).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        closed(stream).await;
        server.gate.open.notify_one();
    });
    assert_eq!(answer.unwrap().2, "late");
}

#[tokio::test]
async fn oversized_head_is_rejected() {
    let server = Server::default().await;
    let long = format!("a: {}\r\n", "x".repeat(17 * 1024));
    let many = "a: x\r\n".repeat(64);
    for fields in [long, many] {
        let mut stream = server.tls(Client::new(HTTP1)).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 431 "));
        server.assert_serves().await;
    }

    let Sender::Http2(mut sender, _) = server.connect(H2).await else {
        panic!("HTTP/2 was requested");
    };
    // The connection stays open.
    for (bytes, expected) in [
        (17 * 1024, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        (1024, StatusCode::OK),
    ] {
        let request = Request::get("https://localhost/")
            .header("a", "x".repeat(bytes))
            .body(Body::empty())
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), expected);
    }
}

#[tokio::test]
async fn head_size_limit_is_configurable() {
    let server = Server::with_limits(ConnectionLimits {
        head_max_bytes: 8 * 1024,
        header_fields_max: 16,
        ..ConnectionLimits::default()
    })
    .await;
    let line = |bytes: usize| format!("a: {}\r\n", "x".repeat(bytes));
    for (fields, expected) in [
        (line(7 * 1024), "200"),
        (line(8 * 1024), "431"),
        // `host` and `connection` count too.
        (line(1).repeat(14), "200"),
        (line(1).repeat(15), "431"),
    ] {
        let mut stream = server.tls(Client::new(HTTP1)).await.unwrap();
        let head =
            format!("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {expected} ")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn handler_panic_affects_only_its_connection() {
    let server = Server::default().await;
    for alpn in [HTTP1, H2] {
        assert!(server.connect(alpn).await.get("/panic").await.is_err());
        server.assert_serves().await;
    }
    let (_, task) = server.stop().await;
    assert_eq!(task.await.unwrap(), DrainReport { connections_cut: 0 });
}

#[tokio::test]
async fn huge_limits_do_not_panic() {
    let server = Server::with_limits(ConnectionLimits {
        handshake_timeout: Duration::MAX,
        header_timeout: Duration::MAX,
        idle_timeout: Duration::MAX,
        drain_timeout: Duration::MAX,
        connections_max: usize::MAX,
        connections_per_peer_max: usize::MAX,
        streams_max: u32::MAX,
        answer_timeout: Duration::MAX,
        ping_interval: Duration::MAX,
        ping_timeout: Duration::MAX,
        head_max_bytes: u32::MAX,
        header_fields_max: usize::MAX,
        pending_resets_max: usize::MAX,
        faulty_streams_max: usize::MAX,
        frame_max_bytes: u32::MAX,
        stream_window_bytes: u32::MAX,
        connection_window_bytes: u32::MAX,
        log_interval: Duration::MAX,
    })
    .await;
    for alpn in [HTTP1, H2] {
        server.connect(alpn).await.get("/").await.unwrap();
    }
    let (_, task) = server.stop().await;
    assert_eq!(task.await.unwrap(), DrainReport { connections_cut: 0 });
}
