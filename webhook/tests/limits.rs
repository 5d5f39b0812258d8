//! Too many, too large, too slow: requests over a limit are rejected, and the others are served.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests fail by panicking"
)]

#[path = "support/log.rs"]
mod log;
#[allow(dead_code, reason = "shared with the tests of readiness")]
mod support;

use axum::body::{Body, Bytes};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use hyper::StatusCode;
use lockkeeper_policies::cluster_view::PriorityClassFacts;
use lockkeeper_policies::index::Index;
use lockkeeper_webhook::live_lookup::ObjectLookup;
use lockkeeper_webhook::load_shedding::LoadLimits;
use log::Log;
use std::convert::Infallible;
use std::sync::{Arc, RwLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use support::{H2, HTTP1, Webhook, WebhookOptions, post, wait_until, workload};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};

/// A timeout that the test exceeds. Long enough for correct clients, also on a busy machine.
const SHORT: Duration = Duration::from_millis(500);

const LARGE_BODY_MIN_BYTES: usize = 2_000;
const LARGE_BODY_BYTES: usize = 2 * LARGE_BODY_MIN_BYTES;

const PROTOCOLS: [&str; 2] = [HTTP1, H2];

/// An API server that has every class, and responds when the test allows it.
#[derive(Clone)]
struct Gate {
    entered: Arc<Semaphore>,
    open: Arc<Notify>,
}

impl Gate {
    fn closed() -> Self {
        Self {
            entered: Arc::new(Semaphore::new(0)),
            open: Arc::default(),
        }
    }

    async fn wait_for_lookups(&self, requests: u32) {
        self.entered.acquire_many(requests).await.unwrap().forget();
    }
}

impl ObjectLookup for Gate {
    fn priority_class<'a>(
        &'a self,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<PriorityClassFacts>, kube::Error>> {
        async move {
            self.entered.add_permits(1);
            self.open.notified().await;
            Ok(Some(PriorityClassFacts {
                value: 0,
                global_default: false,
                preemption_policy: None,
            }))
        }
        .boxed()
    }
}

/// Keeps the stores locked, so that no rule can run, until it is released.
struct IndexLock {
    release: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl IndexLock {
    fn take(index: &Arc<RwLock<Index>>) -> Self {
        let (taken, is_taken) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let index = Arc::clone(index);
        let thread = std::thread::spawn(move || {
            let _locked = index.write().unwrap();
            taken.send(()).unwrap();
            released.recv().unwrap();
        });
        is_taken.recv().unwrap();
        Self { release, thread }
    }

    fn release(self) {
        self.release.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

#[tokio::test]
async fn request_over_limit_is_rejected_at_once() {
    Log::enable();
    let gate = Gate::closed();
    let webhook = Webhook::start(WebhookOptions {
        bounds: LoadLimits {
            requests_max: 2,
            retry_after_seconds: 3,
            ..LoadLimits::default()
        },
        source: Some(Box::new(gate.clone())),
        ..WebhookOptions::default()
    })
    .await;
    let (first, second, ()) = tokio::join!(
        webhook.post(HTTP1, "/validate", workload("a", 0)),
        webhook.post(H2, "/validate", workload("b", 0)),
        async {
            gate.wait_for_lookups(2).await;
            assert_eq!(webhook.load.in_flight(), 2);
            for alpn in PROTOCOLS {
                // The body never ends: the response does not wait for it.
                let unbounded = stream::once(async { Ok::<_, Infallible>(Bytes::from("{")) });
                let unbounded = Body::from_stream(unbounded.chain(stream::pending()));
                let response = webhook.post(alpn, "/mutate", unbounded).await;
                assert_eq!(response.status, StatusCode::TOO_MANY_REQUESTS);
                let wait = response.headers["retry-after"].to_str().unwrap();
                assert_eq!(wait, "3");
                assert_eq!(
                    response.body,
                    "2 requests are in flight, which is the limit; try again in 3 s\n"
                );
                // The probes still get a response.
                assert_eq!(webhook.get(alpn, "/readyz").await.status, StatusCode::OK);
            }
            assert_eq!(webhook.load.shed(), 2);
            gate.open.notify_waiters();
        }
    );
    assert_eq!(first.review()["uid"], "a");
    assert_eq!(second.review()["uid"], "b");
    wait_until(|| webhook.load.in_flight() == 0).await;
    let next = webhook.post(H2, "/mutate", workload("c", 0)).await;
    assert_eq!(next.review()["uid"], "c");
    assert_eq!(webhook.load.shed(), 2);
}

#[tokio::test]
async fn bodies_over_total_limit_are_rejected() {
    Log::enable();
    let webhook = Webhook::with_load_limits(LoadLimits {
        bodies_max_bytes: LARGE_BODY_BYTES,
        ..LoadLimits::default()
    })
    .await;
    for alpn in PROTOCOLS {
        let large = workload("large", LARGE_BODY_BYTES);
        let response = webhook.post(alpn, "/mutate", large).await;
        assert_eq!(response.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(response.headers.contains_key("retry-after"));
        let small = webhook.post(alpn, "/mutate", workload("small", 0)).await;
        assert_eq!(small.review()["uid"], "small");
    }
    wait_until(|| webhook.load.buffered_bytes() == 0).await;
}

#[tokio::test]
async fn slow_body_times_out() {
    Log::enable();
    let webhook = Webhook::with_load_limits(LoadLimits {
        body_timeout: SHORT,
        ..LoadLimits::default()
    })
    .await;
    for alpn in PROTOCOLS {
        let trickle = stream::repeat(()).then(|()| async {
            tokio::time::sleep(SHORT / 10).await;
            Ok::<_, Infallible>(Bytes::from("{"))
        });
        let slow = webhook
            .post(alpn, "/mutate", Body::from_stream(trickle))
            .await;
        assert_eq!(slow.status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(slow.body, "the body did not arrive in time\n");
    }
    wait_until(|| webhook.load.in_flight() == 0 && webhook.load.buffered_bytes() == 0).await;
}

#[tokio::test]
async fn disconnected_client_releases_permits_and_bytes() {
    Log::enable();
    let webhook = Webhook::with_load_limits(LoadLimits::default()).await;
    let mut http1 = webhook.tls(HTTP1).await;
    http1
        .write_all(
            b"POST /validate HTTP/1.1\r\nhost: localhost\r\n\
              content-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"request\"",
        )
        .await
        .unwrap();
    wait_until(|| webhook.load.buffered_bytes() > 0).await;
    drop(http1);
    wait_until(|| webhook.load.in_flight() == 0 && webhook.load.buffered_bytes() == 0).await;

    let half = stream::once(async { Ok::<_, Infallible>(Bytes::from("{")) });
    let half = Body::from_stream(half.chain(stream::pending()));
    tokio::select! {
        _ = webhook.send(H2, post("/validate", half)) => panic!("half a request was answered"),
        () = wait_until(|| webhook.load.buffered_bytes() > 0) => {}
    }
    wait_until(|| webhook.load.in_flight() == 0 && webhook.load.buffered_bytes() == 0).await;
}

#[tokio::test]
async fn small_requests_are_served_beside_large_ones() {
    Log::enable();
    let heavy_max = 2;
    let webhook = Webhook::with_load_limits(LoadLimits {
        large_body_min_bytes: LARGE_BODY_MIN_BYTES,
        heavy_max,
        ..LoadLimits::default()
    })
    .await;
    let lock = IndexLock::take(&webhook.index);
    // One more than the permits.
    let large = || webhook.post(H2, "/mutate", workload("large", LARGE_BODY_BYTES));
    let (first, second, third, ()) = tokio::join!(large(), large(), large(), async {
        wait_until(|| webhook.load.large_in_flight() == heavy_max && webhook.load.in_flight() == 3)
            .await;
        for alpn in PROTOCOLS {
            // No rule is about a status alone, so no store is needed.
            let of_status = r#""subResource":"status","uid""#;
            let small = workload("small", 0).replace(r#""uid""#, of_status);
            let small = webhook.post(alpn, "/validate", small).await.review();
            assert_eq!(
                (&small["uid"], &small["allowed"]),
                (&"small".into(), &true.into())
            );
            assert_eq!(webhook.get(alpn, "/livez").await.status, StatusCode::OK);
        }
        assert_eq!(webhook.load.large_in_flight(), heavy_max);
        lock.release();
    });
    for large in [first, second, third] {
        assert_eq!(large.review()["uid"], "large");
    }
    wait_until(|| webhook.load.large_in_flight() == 0).await;
}

#[tokio::test]
async fn queued_large_request_is_answered_before_timeout() {
    Log::enable();
    let webhook = Webhook::with_load_limits(LoadLimits {
        large_body_min_bytes: LARGE_BODY_MIN_BYTES,
        heavy_max: 1,
        ..LoadLimits::default()
    })
    .await;
    let lock = IndexLock::take(&webhook.index);
    let (first, ()) = tokio::join!(
        webhook.post(H2, "/mutate", workload("first", LARGE_BODY_BYTES)),
        async {
            wait_until(|| webhook.load.large_in_flight() == 1).await;
            for path in ["/validate?timeout=1s", "/mutate?timeout=1s"] {
                let late = workload("late", LARGE_BODY_BYTES);
                let late = webhook.post(HTTP1, path, late).await.review();
                assert_eq!(late["uid"], "late");
                assert_eq!(late["allowed"], false);
                let status = &late["status"];
                assert_eq!(
                    (&status["code"], &status["reason"]),
                    (&504.into(), &"Timeout".into())
                );
                let message = status["message"].as_str().unwrap();
                assert!(message.starts_with("not checked: timed out after 0.5 s"));
                assert!(message.contains("raise timeoutSeconds"), "{message}");
            }
            lock.release();
        }
    );
    assert_eq!(first.review()["uid"], "first");
}

#[tokio::test]
async fn slow_large_request_is_answered_before_timeout() {
    Log::enable();
    let webhook = Webhook::with_load_limits(LoadLimits {
        large_body_min_bytes: LARGE_BODY_MIN_BYTES,
        ..LoadLimits::default()
    })
    .await;
    let lock = IndexLock::take(&webhook.index);
    for alpn in PROTOCOLS {
        let large = workload("large", LARGE_BODY_BYTES);
        let late = webhook.post(alpn, "/validate?timeout=1s", large).await;
        let late = late.review();
        assert_eq!(
            (&late["uid"], &late["status"]["code"]),
            (&"large".into(), &504.into())
        );
    }
    assert_eq!(webhook.load.large_in_flight(), 2, "the threads go on");
    lock.release();
    wait_until(|| webhook.load.large_in_flight() == 0).await;
}

#[tokio::test]
async fn large_request_with_hanging_lookup_gets_warning() {
    Log::enable();
    let webhook = Webhook::start(WebhookOptions {
        bounds: LoadLimits {
            large_body_min_bytes: LARGE_BODY_MIN_BYTES,
            ..LoadLimits::default()
        },
        source: Some(Box::new(Gate::closed())),
        ..WebhookOptions::default()
    })
    .await;
    let large = workload("large", LARGE_BODY_BYTES);
    let answer = webhook.post(H2, "/validate?timeout=1s", large).await;
    let answer = answer.review();
    assert_eq!(answer["uid"], "large");
    let warning = r#"not checked: PriorityClass "large" could not be looked up in time"#;
    assert_eq!(answer["warnings"], serde_json::json!([warning]));
}

#[tokio::test]
async fn large_request_keeps_permit_after_disconnect() {
    Log::enable();
    let webhook = Webhook::with_load_limits(LoadLimits {
        large_body_min_bytes: LARGE_BODY_MIN_BYTES,
        heavy_max: 1,
        ..LoadLimits::default()
    })
    .await;
    let lock = IndexLock::take(&webhook.index);
    tokio::select! {
        _ = webhook.post(H2, "/mutate", workload("large", LARGE_BODY_BYTES)) => panic!("no rule can run"),
        () = wait_until(|| webhook.load.large_in_flight() == 1) => {}
    }
    wait_until(|| webhook.load.in_flight() == 0).await;
    assert_eq!(webhook.load.large_in_flight(), 1, "the thread goes on");
    assert!(webhook.load.buffered_bytes() > LARGE_BODY_BYTES);
    lock.release();
    wait_until(|| webhook.load.large_in_flight() == 0 && webhook.load.buffered_bytes() == 0).await;
}

#[tokio::test]
async fn http1_request_over_limit_is_rejected_by_head() {
    Log::enable();
    let webhook = Webhook::with_load_limits(LoadLimits::default()).await;
    let mut stream = webhook.tls(HTTP1).await;
    stream
        .write_all(
            b"POST /validate HTTP/1.1\r\nhost: localhost\r\n\
              content-type: application/json\r\ncontent-length: 99999999\r\n\r\n",
        )
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.starts_with(b"HTTP/1.1 413 "));
}

/// Any pod can send requests that are rejected, with as many bytes as a head may have.
#[tokio::test]
async fn rejected_requests_write_few_log_bytes_and_none_of_the_client() {
    const REQUESTS: usize = 300;
    const LOG_BYTES_MAX: usize = 2_000;
    let (log, _guard) = Log::take();
    let server = Webhook::with_load_limits(LoadLimits {
        log_interval: Duration::MAX,
        ..LoadLimits::default()
    })
    .await;
    let large = "a".repeat(8_000);
    for number in 0..REQUESTS {
        let mut request = post("/validate", "x");
        // One that is no JSON, one of another type, and one without a review.
        let value = match number % 3 {
            0 => large.parse().unwrap(),
            _ => "application/json".parse().unwrap(),
        };
        request.headers_mut().insert("content-type", value);
        if number % 3 == 2 {
            *request.body_mut() = Body::from(format!("{{\"kind\":\"{large}\"}}"));
        }
        let answer = server.send(H2, request).await.unwrap();
        assert!(answer.status.is_client_error(), "{}", answer.status);
    }
    let text = log.text();
    assert_eq!(log.count_lines("rejected requests"), 1, "{text}");
    assert!(text.len() <= LOG_BYTES_MAX, "{} bytes", text.len());
    assert!(!text.contains("aaaa"), "{text}");
}
