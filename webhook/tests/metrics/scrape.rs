//! The port for scrapers: formats, paths, timeouts and its connection limit.

use lockkeeper_kube_support::probe_server::ProbeServerLimits;
use lockkeeper_webhook::metrics_server;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::app;

/// One exchange with the port for scrapers.
async fn scrape(path: &str, accept: &str) -> String {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let server = tokio::spawn(metrics_server::serve(
        tcp,
        app(&json!({})),
        ProbeServerLimits::default(),
    ));
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: h\r\nAccept: {accept}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // The server closes: each connection has one request.
    client.read_to_string(&mut answer).await.unwrap();
    server.abort();
    answer
}

#[tokio::test]
async fn metrics_server_serves_both_formats_only() {
    let plain = scrape("/metrics", "*/*").await;
    assert!(
        plain.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{plain}"
    );
    assert!(
        plain.contains("# TYPE lockkeeper_webhook_requests_total counter\n"),
        "{plain}"
    );
    assert!(plain.contains("\nlockkeeper_webhook_certificate_not_after_seconds 1800000000\n"));
    assert!(
        plain.contains("\nlockkeeper_webhook_certificate_reloads_total{result=\"applied\"} 3\n")
    );
    assert!(plain.contains("\nlockkeeper_webhook_store_synced{store=\"pods\"} 1\n"));
    let open = scrape("/metrics", "application/openmetrics-text; version=1.0.0").await;
    assert!(
        open.contains("content-type: application/openmetrics-text"),
        "{open}"
    );
    assert!(open.ends_with("# EOF\n"), "{open}");
    assert!(scrape("/healthz", "*/*").await.ends_with("\r\n\r\nok\n"));
    for path in ["/", "/validate", "/readyz"] {
        assert!(
            scrape(path, "*/*").await.starts_with("HTTP/1.1 404 "),
            "{path}"
        );
    }
}

/// A timeout that the test exceeds.
const SHORT: Duration = Duration::from_millis(200);

/// Starts a metrics port with these limits.
async fn start_metrics_server(limits: ProbeServerLimits) -> SocketAddr {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    tokio::spawn(metrics_server::serve(tcp, app(&json!({})), limits));
    address
}

#[tokio::test]
async fn slow_scraper_is_disconnected() {
    let head_late = ProbeServerLimits {
        header_timeout: SHORT,
        connection_timeout: Duration::MAX,
        ..ProbeServerLimits::default()
    };
    let all_late = ProbeServerLimits {
        header_timeout: Duration::from_hours(1),
        connection_timeout: SHORT,
        ..ProbeServerLimits::default()
    };
    for limits in [head_late, all_late] {
        let mut client = TcpStream::connect(start_metrics_server(limits).await)
            .await
            .unwrap();
        client.write_all(b"GET /metrics HT").await.unwrap();
        let mut answer = Vec::new();
        // The wait ends, whichever way the connection is dropped.
        let _ = client.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn scraper_over_limit_closes_oldest_connection() {
    let address = start_metrics_server(ProbeServerLimits {
        connections_max: 1,
        ..ProbeServerLimits::default()
    })
    .await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    let mut next = TcpStream::connect(address).await.unwrap();
    let whole = b"GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n";
    next.write_all(whole).await.unwrap();
    let mut answer = String::new();
    next.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("ok\n"), "{answer}");
    let mut rest = Vec::new();
    // Closed or reset: the head that is half sent may be unread.
    let _ = idle.read_to_end(&mut rest).await;
    assert_eq!(rest, [0; 0]);
}
