//! The limits of HTTP/2 that end a stream or a connection: each limit at its boundary, with frames
//! written by hand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

#[allow(dead_code, reason = "shared with the tests of the transport")]
#[path = "support/frames.rs"]
mod frames;
#[allow(dead_code, reason = "shared with the tests of the transport")]
#[path = "support/server.rs"]
mod server;

use axum::body::Body;
use frames::{
    ACK, CANCEL, Connection, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR, GET, HEADERS, PING, PROTOCOL_ERROR, REFUSED_STREAM, RST_STREAM,
    WINDOW_UPDATE, fields, frame, post_without_body,
};
use hyper::{Request, StatusCode};
use lockkeeper_webhook::listener::ConnectionLimits;
use server::{Client, H2, Sender, Server};
use std::time::Duration;

/// A timeout that the test exceeds. Long enough for correct clients, also on a busy machine.
const SHORT: Duration = Duration::from_millis(500);

/// The payload of a frame that every peer must accept.
const PIECE: [u8; 16 * 1024] = [b' '; 16 * 1024];
const PIECE_BYTES: u32 = 16 * 1024;

async fn connect(server: &Server) -> Connection {
    let stream = server.tls(Client::new(H2)).await.unwrap();
    Connection::begin(stream, &[]).await
}

/// A request to `/never` without its body.
fn open(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &post_without_body())
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

#[tokio::test]
async fn stream_over_limit_is_rejected_and_can_be_retried() {
    let server = Server::with_limits(ConnectionLimits {
        streams_max: 2,
        ..ConnectionLimits::default()
    })
    .await;
    let mut connection = connect(&server).await;
    connection.send(&[open(1), open(3), open(5)].concat()).await;
    let frame = connection.next_of(RST_STREAM).await.unwrap();
    assert_eq!((frame.stream, frame.code()), (5, REFUSED_STREAM));
    server.gate.wait_for_requests(2).await;

    // After the end of one stream, the rejected request is served on the same connection.
    connection.send(&reset(1, CANCEL)).await;
    connection.assert_serves(7).await;
    server.assert_serves().await;
}

#[tokio::test]
async fn repeated_streams_over_limit_close_connection() {
    let server = Server::with_limits(ConnectionLimits {
        streams_max: 1,
        faulty_streams_max: 3,
        ..ConnectionLimits::default()
    })
    .await;
    let mut connection = connect(&server).await;
    connection.send(&open(1)).await;
    for stream in [3, 5, 7] {
        connection.send(&open(stream)).await;
        let frame = connection.next_of(RST_STREAM).await.unwrap();
        assert_eq!((frame.stream, frame.code()), (stream, REFUSED_STREAM));
    }
    connection.quiet().await;
    connection.send(&open(9)).await;
    assert_eq!(connection.goaway().await, Some(ENHANCE_YOUR_CALM));
    server.assert_serves().await;
}

/// Requests that are reset immediately, all in one write, so that the server handles none before.
fn cancelled_requests(count: u32) -> Vec<u8> {
    let pairs = (0..count).map(|number| {
        let stream = 2 * number + 1;
        let get = frame(HEADERS, END_STREAM | END_HEADERS, stream, GET);
        [get, reset(stream, CANCEL)].concat()
    });
    pairs.collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn rapid_reset_closes_connection() {
    let most = 5;
    let server = Server::with_limits(ConnectionLimits {
        pending_resets_max: usize::try_from(most).unwrap(),
        ..ConnectionLimits::default()
    })
    .await;
    let mut other = server.connect(H2).await;
    other.get("/").await.unwrap();

    let mut connection = connect(&server).await;
    connection.send(&cancelled_requests(most)).await;
    connection.quiet().await;
    connection.assert_serves(2 * most + 1).await;

    let mut connection = connect(&server).await;
    connection.send(&cancelled_requests(most + 1)).await;
    assert_eq!(connection.goaway().await, Some(ENHANCE_YOUR_CALM));

    assert_eq!(other.get("/").await.unwrap().2, "fine");
    server.assert_serves().await;
}

#[tokio::test]
async fn rapid_reset_closes_connection_with_default_limits() {
    let server = Server::default().await;
    let mut connection = connect(&server).await;
    connection.send(&cancelled_requests(200)).await;
    assert_eq!(connection.goaway().await, Some(ENHANCE_YOUR_CALM));
    server.assert_serves().await;
}

#[tokio::test]
async fn faulty_streams_close_connection() {
    let server = Server::with_limits(ConnectionLimits {
        faulty_streams_max: 3,
        ..ConnectionLimits::default()
    })
    .await;
    // A field that only HTTP/1.1 has.
    let bad = fields(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/"),
        ("connection", "close"),
    ]);
    let bad = |stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, &bad);
    let mut connection = connect(&server).await;
    for stream in [1, 3, 5] {
        connection.send(&bad(stream)).await;
        let ended = connection.next_of(RST_STREAM).await.unwrap();
        assert_eq!((ended.stream, ended.code()), (stream, PROTOCOL_ERROR));
    }
    connection.assert_serves(7).await;
    connection.send(&bad(9)).await;
    assert_eq!(connection.goaway().await, Some(ENHANCE_YOUR_CALM));
    server.assert_serves().await;
}

#[tokio::test]
async fn unread_body_is_limited_by_stream_window() {
    let server = Server::with_limits(ConnectionLimits {
        stream_window_bytes: 8 * PIECE_BYTES,
        connection_window_bytes: 16 * PIECE_BYTES,
        ..ConnectionLimits::default()
    })
    .await;
    let mut connection = connect(&server).await;
    connection.send(&open(1)).await;
    server.gate.wait_for_requests(1).await;
    for _ in 0..8 {
        connection.send(&frame(DATA, 0, 1, &PIECE)).await;
    }
    let seen = connection.quiet().await;
    assert!(
        seen.iter().all(|frame| frame.kind != WINDOW_UPDATE),
        "{seen:?}"
    );

    // One byte more than the window allows.
    connection.send(&frame(DATA, 0, 1, b"x")).await;
    let ended = connection.next_of(RST_STREAM).await.unwrap();
    assert_eq!((ended.stream, ended.code()), (1, FLOW_CONTROL_ERROR));
    connection.assert_serves(3).await;
    server.assert_serves().await;
}

#[tokio::test]
async fn unread_bodies_are_limited_by_connection_window() {
    let server = Server::with_limits(ConnectionLimits {
        stream_window_bytes: 8 * PIECE_BYTES,
        connection_window_bytes: 8 * PIECE_BYTES,
        ..ConnectionLimits::default()
    })
    .await;
    let mut connection = connect(&server).await;
    connection.send(&[open(1), open(3)].concat()).await;
    server.gate.wait_for_requests(2).await;
    for _ in 0..4 {
        connection.send(&frame(DATA, 0, 1, &PIECE)).await;
        connection.send(&frame(DATA, 0, 3, &PIECE)).await;
    }
    let seen = connection.quiet().await;
    assert!(
        seen.iter().all(|frame| frame.kind != WINDOW_UPDATE),
        "{seen:?}"
    );

    connection.send(&frame(DATA, 0, 3, b"x")).await;
    assert_eq!(connection.goaway().await, Some(FLOW_CONTROL_ERROR));
    server.assert_serves().await;
}

#[tokio::test]
async fn oversized_frame_closes_connection() {
    for most in [16 * 1024, 32 * 1024] {
        let server = Server::with_limits(ConnectionLimits {
            frame_max_bytes: most,
            ..ConnectionLimits::default()
        })
        .await;
        let data = |bytes: u32| frame(DATA, 0, 1, &vec![b' '; usize::try_from(bytes).unwrap()]);
        let mut connection = connect(&server).await;
        connection.send(&open(1)).await;
        connection.send(&data(most)).await;
        connection.assert_serves(3).await;
        connection.send(&data(most + 1)).await;
        assert_eq!(connection.goaway().await, Some(FRAME_SIZE_ERROR));
        server.assert_serves().await;
    }
}

#[tokio::test]
async fn oversized_head_is_rejected_and_connection_stays() {
    for (most, good, bad) in [
        (8 * 1024, 7 * 1024, 8 * 1024),
        (32 * 1024, 31 * 1024, 32 * 1024),
    ] {
        let server = Server::with_limits(ConnectionLimits {
            head_max_bytes: most,
            ..ConnectionLimits::default()
        })
        .await;
        let Sender::Http2(mut sender, _) = server.connect(H2).await else {
            panic!("HTTP/2 was requested");
        };
        for (bytes, expected) in [
            (good, StatusCode::OK),
            (bad, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
            (good, StatusCode::OK),
        ] {
            let request = Request::get("https://localhost/")
                .header("a", "x".repeat(bytes))
                .body(Body::empty())
                .unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.status(), expected, "{bytes} of {most}");
        }
    }
}

#[tokio::test]
async fn client_without_ping_answer_is_disconnected() {
    let server = Server::with_limits(ConnectionLimits {
        ping_interval: SHORT,
        ping_timeout: SHORT,
        ..ConnectionLimits::default()
    })
    .await;
    let (mut lively, mut dead) = (connect(&server).await, connect(&server).await);
    for _ in 0..3 {
        let ping = lively.next_of(PING).await.unwrap();
        assert_eq!(ping.flags, 0);
        lively.send(&frame(PING, ACK, 0, &ping.payload)).await;
    }
    // In the meantime this connection got no response.
    while dead.next().await.is_some() {}
    lively.assert_serves(1).await;
    server.assert_serves().await;
}
