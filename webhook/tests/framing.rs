//! The end of an HTTP/1.1 request: an ambiguous one is rejected, and the bytes after it are never
//! parsed as a second request (RFC 9112, sections 6 and 7).

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

use support::{HTTP1, Webhook, WebhookOptions, workload};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The request after the tested one. If it gets a response, the connection ends with it.
const SECOND: &str = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// The responses to a request and to [`SECOND`] after it.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The first one is rejected, and the connection ends.
    Rejected,
    /// The first one gets a response, and the connection ends.
    Last,
    /// Both get a response: the end of the first one is unambiguous.
    Both,
}

use Outcome::{Both, Last, Rejected};

/// Sends a POST with these fields and this body, and [`SECOND`] directly after it.
async fn outcome(webhook: &Webhook, fields: &str, body: &str) -> (Outcome, String) {
    let head = format!(
        "POST /mutate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{fields}\r\n"
    );
    sent(webhook, &format!("{head}{body}{SECOND}")).await
}

async fn sent(webhook: &Webhook, text: &str) -> (Outcome, String) {
    let mut stream = webhook.tls(HTTP1).await;
    // In one record, so that all bytes have arrived before the first one is parsed.
    assert!(text.len() < 16 * 1024);
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let mut codes = answer
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|answer| answer.get(..3).unwrap());
    let outcome = match (codes.next(), codes.next(), codes.next()) {
        (Some("400" | "431"), None, None) => Rejected,
        (Some("200"), None, None) => Last,
        (Some("200"), Some("200"), None) => Both,
        other => panic!("{other:?} to {text}\n{answer}"),
    };
    (outcome, answer)
}

#[track_caller]
fn assert_outcome(seen: &(Outcome, String), expected: &Outcome, what: &str) {
    assert_eq!(&seen.0, expected, "{what:?}: {}", seen.1);
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

#[tokio::test]
async fn request_with_unambiguous_length_keeps_connection() {
    let webhook = Webhook::start(WebhookOptions::default()).await;
    let review = workload("first", 0);
    let (start, end) = review.split_at(100);
    let length = format!("content-length: {}\r\n", review.len());
    let chunked = "transfer-encoding: chunked\r\n";
    for (fields, body) in [
        (length.clone(), review.clone()),
        (format!("{length}{length}"), review.clone()),
        (chunked.to_owned(), format!("{}0\r\n\r\n", chunk(&review))),
        (
            "Transfer-Encoding:CHUNKED\r\n".to_owned(),
            format!("{}0\r\n\r\n", chunk(&review)),
        ),
        (
            chunked.to_owned(),
            format!("{}{}000\r\n\r\n", chunk(start), chunk(end)),
        ),
        // Chunk extensions and trailers do not change the length.
        (
            chunked.to_owned(),
            format!("{:X};a=b\r\n{review}\r\n0;c\r\n\r\n", review.len()),
        ),
        (
            chunked.to_owned(),
            format!("{}0\r\ncontent-length: 5\r\nx: y\r\n\r\n", chunk(&review)),
        ),
    ] {
        let seen = outcome(&webhook, &fields, &body).await;
        assert_outcome(&seen, &Both, &fields);
        assert!(seen.1.contains(r#""uid":"first""#), "{}", seen.1);
        assert!(seen.1.ends_with("ok\n"), "{}", seen.1);
    }
}

/// RFC 9112, section 6.1: the length is ignored, and the connection ends.
#[tokio::test]
async fn content_length_with_chunked_closes_connection() {
    let webhook = Webhook::start(WebhookOptions::default()).await;
    let body = format!("{}0\r\n\r\n", chunk(&workload("first", 0)));
    let chunked = "transfer-encoding: chunked\r\n";
    for length in [0, 5, body.len(), body.len() + SECOND.len(), 1_000_000] {
        let length = format!("content-length: {length}\r\n");
        for fields in [format!("{length}{chunked}"), format!("{chunked}{length}")] {
            let seen = outcome(&webhook, &fields, &body).await;
            assert_outcome(&seen, &Last, &fields);
            assert!(seen.1.contains(r#""uid":"first""#), "{}", seen.1);
        }
    }
}

#[tokio::test]
async fn invalid_content_length_is_rejected() {
    let webhook = Webhook::start(WebhookOptions::default()).await;
    let review = workload("first", 0);
    let length = review.len();
    for fields in [
        format!(
            "content-length: {length}\r\ncontent-length: {}\r\n",
            length + 1
        ),
        format!("content-length: {length}\r\ncontent-length: 0\r\n"),
        format!("content-length: {length}, {length}\r\n"),
        format!("content-length: -{length}\r\n"),
        format!("content-length: +{length}\r\n"),
        format!("content-length: {length:#x}\r\n"),
        format!("content-length: {length}.0\r\n"),
        format!("content-length: {length} {length}\r\n"),
        format!("content-length: \"{length}\"\r\n"),
        "content-length: \r\n".to_owned(),
        "content-length: 18446744073709551616\r\n".to_owned(),
        "content-length: 18446744073709551615\r\n".to_owned(),
    ] {
        let seen = outcome(&webhook, &fields, &review).await;
        assert_outcome(&seen, &Rejected, &fields);
    }
}

#[tokio::test]
async fn transfer_coding_other_than_chunked_is_rejected() {
    let webhook = Webhook::start(WebhookOptions::default()).await;
    let body = format!("{}0\r\n\r\n", chunk(&workload("first", 0)));
    for coding in [
        "transfer-encoding: chunked, identity",
        "transfer-encoding: identity, chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: identity",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked;q=1",
        "transfer-encoding: \"chunked\"",
        "transfer-encoding: ,chunked",
        "transfer-encoding: chunked,",
        "transfer-encoding: \u{b}chunked",
        "transfer-encoding: chu\0nked",
        "transfer-encoding:",
        "transfer-encoding : chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding: identity\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: identity\r\ncontent-length: 5",
    ] {
        let seen = outcome(&webhook, &format!("{coding}\r\n"), &body).await;
        assert_outcome(&seen, &Rejected, coding);
    }
    // HTTP/1.0 has no chunks.
    let old = format!(
        "POST /mutate HTTP/1.0\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n{body}{SECOND}"
    );
    let mut stream = webhook.tls(HTTP1).await;
    stream.write_all(old.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.0 400 ") || answer.starts_with("HTTP/1.1 400 "),
        "{answer}"
    );
    assert_eq!(answer.matches("HTTP/1.").count(), 1, "{answer}");
}

#[tokio::test]
async fn malformed_chunk_is_rejected() {
    let webhook = Webhook::start(WebhookOptions::default()).await;
    let review = workload("first", 0);
    let size = format!("{:x}", review.len());
    for body in [
        // Line feeds alone.
        format!("{size}\n{review}\r\n0\r\n\r\n"),
        format!("{size}\r\n{review}\n0\r\n\r\n"),
        format!("{size};a\n{review}\r\n0\r\n\r\n"),
        format!("{}0\n\r\n", chunk(&review)),
        // Sizes.
        format!("-{size}\r\n{review}\r\n0\r\n\r\n"),
        format!("+{size}\r\n{review}\r\n0\r\n\r\n"),
        format!("0x{size}\r\n{review}\r\n0\r\n\r\n"),
        format!(" {size}\r\n{review}\r\n0\r\n\r\n"),
        format!("{size} 0\r\n{review}\r\n0\r\n\r\n"),
        format!("{size}_0\r\n{review}\r\n0\r\n\r\n"),
        format!("{size}\r{review}\r\n0\r\n\r\n"),
        format!("\r\n{review}\r\n0\r\n\r\n"),
        format!("1{size:0>16}\r\n{review}\r\n0\r\n\r\n"),
        // A size that differs from its chunk.
        format!("1\r\n{review}\r\n0\r\n\r\n"),
        // Fields after the last chunk.
        format!("{}0\r\nx\r\n\r\n", chunk(&review)),
        format!("{}0\r\nx: \0\r\n\r\n", chunk(&review)),
    ] {
        let seen = outcome(&webhook, "transfer-encoding: chunked\r\n", &body).await;
        assert_outcome(&seen, &Rejected, &body);
    }
}

#[tokio::test]
async fn malformed_head_is_rejected() {
    let webhook = Webhook::start(WebhookOptions::default()).await;
    let review = workload("first", 0);
    let length = format!("content-length: {}", review.len());
    for fields in [
        // A folded line (obs-fold).
        format!("x: y\r\n {length}\r\n"),
        format!("x: y\r\n\t{length}\r\n"),
        format!("content-length:\r\n {}\r\n", review.len()),
        format!("x: \0\r\n{length}\r\n"),
        format!("\0x: y\r\n{length}\r\n"),
        format!("x: a\rb\r\n{length}\r\n"),
        format!("x: y\r{length}\r\n"),
        format!("x y: z\r\n{length}\r\n"),
        format!("content-length : {}\r\n", review.len()),
        format!(": y\r\n{length}\r\n"),
        format!("x\r\n{length}\r\n"),
        format!("\u{e4}: y\r\n{length}\r\n"),
    ] {
        let seen = outcome(&webhook, &fields, &review).await;
        assert_outcome(&seen, &Rejected, &fields);
    }
}
