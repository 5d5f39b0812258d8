//! One connection, from the handshake to its close.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING};
use hyper::service::{Service, service_fn};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tracing::debug;

use super::requests::{self, ConnectionRequests, OpenRequest, TrackedBody};
use super::{ConnectionLimits, ListenerState};
use lockkeeper_certs::tls;

/// How long a closing server waits for the first request of a new connection. Clients retry a request that
/// failed on a reused connection, but not one that failed on a new connection.
const FIRST_REQUEST_WAIT: Duration = Duration::from_secs(1);

/// hyper's smallest limit of the head, in bytes. It panics below.
const HEAD_MAX_BYTES_MIN: u32 = 8 * 1024;

/// The most header fields of HTTP/1.1. hyper allocates memory for all of them at each request.
const HEADER_FIELDS_LIMIT: usize = 1_024;

/// The range of HTTP/2 frame sizes, in bytes (RFC 9113, section 4.2).
const FRAME_BYTES_MIN: u32 = 16_384;
const FRAME_BYTES_MAX: u32 = 16_777_215;

/// The largest window of HTTP/2, in bytes (RFC 9113, section 6.9.1).
const WINDOW_BYTES_MAX: u32 = 0x7fff_ffff;

/// An accepted connection with the state that its task needs.
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) shared: Arc<ListenerState>,
    /// Changes once, when the server starts to close.
    pub(super) closing: watch::Receiver<()>,
}

/// Why a connection ended with unfinished requests. hyper's own text has only the kind of error; its
/// sources are omitted, since they may quote the client.
type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

impl Connection {
    /// Serves the connection to its end.
    pub(super) async fn run(self, tcp: TcpStream) {
        let peer = self.peer;
        // A response is written at once, so Nagle's algorithm would only delay its last segment.
        if let Err(error) = tcp.set_nodelay(true) {
            debug!(%peer, %error, "cannot set TCP_NODELAY");
        }
        let handshake = self.shared.tls.accept(tcp);
        match timeout(self.shared.limits.handshake_timeout, handshake).await {
            Err(_) => debug!(%peer, "handshake timed out"),
            Ok(Err(error)) => debug!(%peer, %error, "handshake failed"),
            Ok(Ok(stream)) => {
                if let Err(error) = self.serve_requests(stream).await {
                    debug!(%peer, %error, "connection failed");
                }
            }
        }
    }

    /// Serves requests until one side closes.
    async fn serve_requests(mut self, stream: TlsStream<TcpStream>) -> Result<(), ConnectionError> {
        let limits = &self.shared.limits;
        let closing = &mut self.closing;
        let http = http_builder(limits, stream.get_ref().1.alpn_protocol());
        let (requests, seen) = watch::channel(ConnectionRequests::default());
        let router = TowerToHyperService::new(self.shared.router.clone());
        let peer = tls::Peer::from_connection(stream.get_ref().1, self.peer);
        let service = service_fn(move |mut request: Request<Incoming>| {
            // `tls::require_client_cert` reads it.
            request.extensions_mut().insert(peer);
            // Before the router is called, so that the idle timeout stops at the head of a request.
            let open = OpenRequest::new(&requests);
            let is_clear = has_unambiguous_length(&request);
            let answer = is_clear.then(|| router.call(request));
            async move {
                let answer = match answer {
                    Some(answer) => answer.await,
                    None => Ok(ambiguous_length_response()),
                };
                // From here, `answer_timeout` limits the time to read the response.
                let taken = open.into_pending_response();
                answer.map(|answer| answer.map(|body| TrackedBody::new(body, taken)))
            }
        });
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            // The connection first: a request that has arrived is handled before the shutdown
            // signal.
            biased;
            ended = connection.as_mut() => return ended,
            // The drain timeout of the server limits this.
            () = wait_for_close(closing, seen.clone()) => {}
            () = requests::wait_until_overdue(seen.clone(), limits) => return Err(ResponseStalled.into()),
            () = requests::wait_until_idle(seen, limits) => {
                connection.as_mut().graceful_shutdown();
                // A client that ignores the GOAWAY must not keep its connection.
                return timeout(limits.drain_timeout, connection).await?;
            }
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }
}

/// Serves HTTP with the version that was negotiated in the handshake.
fn http_builder(limits: &ConnectionLimits, alpn: Option<&[u8]>) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let head_max_bytes = limits.head_max_bytes.max(HEAD_MAX_BYTES_MIN);
    let window = |bytes: u32| bytes.min(WINDOW_BYTES_MAX);
    let frame = |bytes: u32| bytes.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX);
    builder
        .http1()
        .timer(TokioTimer::new())
        .max_headers(limits.header_fields_max.min(HEADER_FIELDS_LIMIT))
        // A head must fit; a body is read in pieces.
        .max_buf_size(usize::try_from(head_max_bytes).unwrap_or(usize::MAX))
        // hyper includes the idle time before a request in this timeout, and ends the connection
        // without a TLS close_notify, so the idle timeout must come first.
        .header_read_timeout(cap_at_one_day(
            limits.idle_timeout.saturating_add(limits.header_timeout),
        ));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(head_max_bytes)
        .max_frame_size(frame(limits.frame_max_bytes))
        .initial_stream_window_size(window(limits.stream_window_bytes))
        .initial_connection_window_size(window(limits.connection_window_bytes))
        .max_pending_accept_reset_streams(limits.pending_resets_max)
        .max_local_error_reset_streams(limits.faulty_streams_max)
        .keep_alive_interval(cap_at_one_day(limits.ping_interval))
        .keep_alive_timeout(cap_at_one_day(limits.ping_timeout));
    // Not detected from the first bytes: a client could delay them without a timeout, or use HTTP/2
    // where only HTTP/1.1 is offered.
    if tls::chose_http2(alpn) {
        builder.http2_only()
    } else {
        builder.http1_only()
    }
}

/// Returns true if the end of this body is unambiguous. hyper rejects most ambiguous ones.
fn has_unambiguous_length(request: &Request<Incoming>) -> bool {
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    // hyper accepts any coding before `chunked`, which a proxy in front may interpret differently
    // (request smuggling).
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    codings.next().is_none_or(is_chunked) && codings.next().is_none()
}

/// The response to an ambiguous body. Later bytes of the connection are not read.
fn ambiguous_length_response() -> Response {
    let text = "transfer-encoding can only be chunked, once\n";
    (StatusCode::BAD_REQUEST, [(CONNECTION, "close")], text).into_response()
}

/// hyper adds durations to the clock unchecked, and would panic on a huge one.
fn cap_at_one_day(duration: Duration) -> Duration {
    duration.min(Duration::from_hours(24))
}

/// The client does not read the response.
#[derive(Debug, thiserror::Error)]
#[error("an answer was not taken in time")]
struct ResponseStalled;

/// Completes when the server closes and this client has no request on its way.
async fn wait_for_close(
    closing: &mut watch::Receiver<()>,
    mut requests: watch::Receiver<ConnectionRequests>,
) {
    // An error means that the server has stopped already.
    let _ = closing.changed().await;
    let first_request = requests.wait_for(|requests| requests.has_received_any);
    let _ = timeout(FIRST_REQUEST_WAIT, first_request).await;
}
