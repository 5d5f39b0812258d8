//! The faults of the proxy, and their counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::HttpMessage;

/// The faults. A number n means the first and every n-th request or event after it; 0 means never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The delay of each request, and of each event of a watch.
    pub latency_ms: u64,
    /// The part of a request line whose requests and events have the additional delay `slow_ms`.
    pub slow: &'static str,
    pub slow_ms: u64,
    /// Every request gets 503.
    pub unavailable: bool,
    /// The collection whose first list stops after the head of the response: nothing follows, and the connection stays
    /// open.
    pub frozen_list: &'static str,
    /// The additional delay of an event.
    pub lag_ms: u64,
    /// Writes that get 429 and are not done.
    pub busy: usize,
    /// Writes that get 500 or 503, in turns, and are not done.
    pub broken: usize,
    /// Writes that are done; the connection breaks before the response.
    pub lost: usize,
    /// Writes of a status that get 409 and are not done.
    pub conflict: usize,
    /// The number of requests for a further page of a list that get 410; later ones succeed.
    pub pages: usize,
    /// The collection whose watches break; all collections if empty.
    pub watches: &'static str,
    /// A watch breaks after this many events.
    pub cut: usize,
    /// Like the above, and the resource version has expired: the client gets 410 in the stream or, alternately, when
    /// it watches again.
    pub gone: usize,
}

/// The counts of requests, events and faults so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultCounts {
    pub requests: usize,
    pub writes: usize,
    pub events: usize,
    /// Delayed requests and events.
    pub late: usize,
    /// Requests that got 503 because the API server was unavailable.
    pub unavailable: usize,
    pub frozen_lists: usize,
    pub busy: usize,
    pub broken: usize,
    pub lost: usize,
    pub statuses: usize,
    pub conflicts: usize,
    pub pages: usize,
    pub pages_gone: usize,
    pub cut: usize,
    pub gone_in_stream: usize,
    pub gone_at_start: usize,
    /// Writes in flight, and their maximum.
    pub in_flight: usize,
    pub max_in_flight: usize,
}

/// How the proxy handles a request.
#[derive(Clone, Copy)]
pub(super) enum Disposition {
    Forward,
    /// The request is forwarded, and the response is dropped.
    DropResponse,
    /// The request is forwarded, and only the head of the response is sent.
    FreezeAfterHead,
    /// The response has this code and reason instead.
    Respond(u16, &'static str),
}

impl Faults {
    /// The delay of a request with this first line.
    pub(super) fn delay_ms(&self, first: &str) -> u64 {
        let is_slow = self.slow_ms > 0 && first.contains(self.slow);
        self.latency_ms + if is_slow { self.slow_ms } else { 0 }
    }
}

const EXPIRED: Disposition = Disposition::Respond(410, "Expired");

impl FaultCounts {
    /// Counts a request and decides how to handle it. Versions of a collection below `oldest` have expired.
    pub(super) fn dispose(
        &mut self,
        request: &HttpMessage,
        faults: &Faults,
        oldest: &BTreeMap<String, u64>,
    ) -> Disposition {
        self.requests += 1;
        let path = path(request);
        if faults.unavailable {
            self.unavailable += 1;
            self.in_flight += usize::from(is_write(request));
            return Disposition::Respond(503, "ServiceUnavailable");
        }
        if is_watch(request) {
            let oldest = oldest.get(collection(path));
            let is_expired = oldest.is_some_and(|oldest| version(path) < *oldest);
            self.gone_at_start += usize::from(is_expired);
            return if is_expired {
                EXPIRED
            } else {
                Disposition::Forward
            };
        }
        if !is_write(request) {
            let is_frozen = !faults.frozen_list.is_empty()
                && self.frozen_lists == 0
                && collection(path).ends_with(faults.frozen_list);
            if is_frozen {
                self.frozen_lists += 1;
                return Disposition::FreezeAfterHead;
            }
            let is_further = path.contains("continue=");
            let is_expired = is_further && self.pages_gone < faults.pages;
            self.pages += usize::from(is_further);
            self.pages_gone += usize::from(is_expired);
            return if is_expired {
                EXPIRED
            } else {
                Disposition::Forward
            };
        }
        self.in_flight += 1;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
        let number = self.writes;
        self.writes += 1;
        if is_due(number, faults.busy) {
            self.busy += 1;
            return Disposition::Respond(429, "TooManyRequests");
        }
        if is_due(number, faults.broken) {
            self.broken += 1;
            return match self.broken % 2 {
                0 => Disposition::Respond(503, "ServiceUnavailable"),
                _ => Disposition::Respond(500, "InternalError"),
            };
        }
        if is_due(number, faults.lost) {
            self.lost += 1;
            return Disposition::DropResponse;
        }
        if collection(path).ends_with("/status")
            && count_and_check_due(&mut self.statuses, faults.conflict)
        {
            self.conflicts += 1;
            return Disposition::Respond(409, "Conflict");
        }
        Disposition::Forward
    }
}

/// Whether the fault occurs at this number, counted from 0: at every multiple of `every`; never if that is 0.
fn is_due(number: usize, every: usize) -> bool {
    every > 0 && number.is_multiple_of(every)
}

/// Increments a counter, and returns whether the fault occurs at its former value.
fn count_and_check_due(count: &mut usize, every: usize) -> bool {
    *count += 1;
    is_due(*count - 1, every)
}

pub(super) fn is_write(request: &HttpMessage) -> bool {
    !request.first.starts_with("GET ")
}

pub(super) fn is_watch(request: &HttpMessage) -> bool {
    path(request).contains("watch=true")
}

/// The path and the query.
pub(super) fn path(request: &HttpMessage) -> &str {
    request.first.split(' ').nth(1).unwrap_or_default()
}

pub(super) fn collection(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// The version at which a watch starts.
fn version(path: &str) -> u64 {
    let version = path.split("resourceVersion=").nth(1);
    let version = version.and_then(|it| it.split('&').next());
    version.and_then(|it| it.parse().ok()).unwrap_or_default()
}

pub(super) fn status(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "injected", "reason": reason, "code": code,
    })
}

pub(super) fn error_response(code: u16, reason: &str) -> HttpMessage {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut fields = vec![field("content-type", "application/json")];
    if code == 429 {
        fields.push(field("retry-after", "1"));
    }
    HttpMessage {
        first: format!("HTTP/1.1 {code} {reason}"),
        fields,
        body: status(code, reason).to_string().into_bytes(),
        is_last: false,
    }
}
