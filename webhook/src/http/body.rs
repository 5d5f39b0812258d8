//! Reads a body within the limits.

use super::error::HttpError;
use super::handler_state::HandlerState;
use crate::load_shedding::BufferedBody;
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use lockkeeper_certs::tls::Peer;
use std::net::IpAddr;
use tokio::time::{Instant, timeout_at};

/// The part of a request that is read here.
pub(super) struct RequestBody<'a> {
    /// The address of the client, if the request came over a connection.
    pub(super) peer: Option<IpAddr>,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Body,
}

impl<'a> RequestBody<'a> {
    /// The body with what the head of its request says.
    pub(super) fn new(head: &'a Parts, body: Body) -> Self {
        let peer: Option<&Peer> = head.extensions.get();
        Self {
            peer: peer.map(|it| it.address.ip()),
            headers: &head.headers,
            body,
        }
    }
}

/// Reads the body. Errors if it exceeds the limits of size and time.
pub(super) async fn read(
    server: &HandlerState,
    request: RequestBody<'_>,
    deadline: Instant,
) -> Result<BufferedBody, HttpError> {
    let RequestBody {
        peer,
        headers,
        body,
    } = request;
    check_content_type(headers)?;
    let limit = server.app.body_limit_bytes;
    // Rejects a large body before its first byte. A chunked one has no length; `collect` limits it.
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: usize| length > limit) {
        return Err(HttpError::TooLarge(limit));
    }
    let body_deadline = Instant::now().checked_add(server.load.limits().body_timeout);
    let deadline = body_deadline.map_or(deadline, |body_deadline| body_deadline.min(deadline));
    timeout_at(deadline, collect(server, peer, body, limit))
        .await
        .map_err(|_| HttpError::BodyTimeout)?
}

async fn collect(
    server: &HandlerState,
    peer: Option<IpAddr>,
    mut body: Body,
    limit: usize,
) -> Result<BufferedBody, HttpError> {
    let mut buffered = BufferedBody::new(&server.load, peer);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| HttpError::ConnectionBroken(error.to_string()))?;
        // Trailers are ignored.
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if buffered.bytes().len().saturating_add(piece.len()) > limit {
            return Err(HttpError::TooLarge(limit));
        }
        buffered.push(piece)?;
    }
    Ok(buffered)
}

fn check_content_type(headers: &HeaderMap) -> Result<(), HttpError> {
    let value = headers
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    // Parameters such as `charset` are ignored.
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    if essence
        .trim_ascii()
        .eq_ignore_ascii_case(b"application/json")
    {
        return Ok(());
    }
    Err(HttpError::ContentType)
}
