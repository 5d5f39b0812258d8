//! Limits on load, connections and time.

use super::bounded::BoundedInt;
use super::conflict::{BoundCheck, ConfigConflict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes.
const KIB: u64 = 1024;

/// Bytes.
const MIB: u64 = 1024 * KIB;

/// Limits on load, connections and time. Requests over a limit are rejected early; see `docs/reliability.md`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Concurrent requests, including those whose body is still being read. Further ones are rejected with
    /// 429. The probes have no limit.
    pub requests_max: BoundedInt<1, 65_536>,
    /// Concurrent requests from one client address, including those whose body is still being read. Further ones are
    /// rejected with 429. Raise it where a proxy sends the requests of several API servers.
    pub requests_per_peer_max: BoundedInt<1, 65_536>,
    /// Total size of buffered request bodies, in bytes. Requests above it are rejected with 429. At least
    /// `webhook.bodyLimitBytes`.
    pub bodies_max_bytes: BoundedInt<MIB, { 64 * 1024 * MIB }>,
    /// Size of buffered request bodies from one client address, in bytes. Requests above it are rejected with 429. At
    /// least `webhook.bodyLimitBytes`.
    pub bodies_per_peer_max_bytes: BoundedInt<MIB, { 64 * 1024 * MIB }>,
    /// `Retry-After` of responses with 429, in seconds. The API server retries until its `timeoutSeconds` are
    /// over.
    pub retry_after_seconds: BoundedInt<1, 30>,
    /// Timeout for reading a body, in seconds; the deadline of the review may be earlier. Then the request is
    /// rejected with 408. The API server sends a body within milliseconds.
    pub body_timeout_seconds: BoundedInt<1, 60>,
    /// Smallest body that is reviewed on a separate thread, in bytes. Smaller ones are reviewed on the
    /// threads that serve connections.
    pub large_body_min_bytes: BoundedInt<KIB, { 64 * MIB }>,
    /// Concurrent reviews of large bodies. Further ones wait until their deadline.
    pub large_bodies_max: BoundedInt<1, 256>,
    /// Time reserved for the response to reach the API server before the request's `timeout`, in
    /// milliseconds; never more than half of the timeout.
    pub answer_reserve_milliseconds: BoundedInt<100, 10_000>,
    /// Part of that reserve that rules may use to run again after a live lookup, in milliseconds.
    pub retry_reserve_milliseconds: BoundedInt<1, 10_000>,
    /// How long the webhook caches that an object does not exist, in milliseconds. Until then a new
    /// PriorityClass may not be seen.
    pub negative_cache_milliseconds: BoundedInt<0, 60_000>,
    /// Maximum number of entries in that cache. When it is full, it is cleared.
    pub negative_cache_entries_max: BoundedInt<1, 1_048_576>,
    /// How long a cache update waits for reviews of large objects, in milliseconds. After that it takes the
    /// lock, and new reviews wait.
    pub stores_lag_max_milliseconds: BoundedInt<0, 60_000>,
    /// Minimum interval between two log lines about the same limit, in seconds. Each line has the count so
    /// far.
    pub log_interval_seconds: BoundedInt<1, 3_600>,
    /// Open connections, including those in the handshake. Further ones wait in the kernel's queue. Each
    /// needs a file descriptor.
    pub connections_max: BoundedInt<1, 1_048_576>,
    /// Open connections from one client address. Further ones are closed at once. An API server needs one with HTTP/2,
    /// and one for each concurrent request with HTTP/1.1.
    pub connections_per_peer_max: BoundedInt<1, 1_048_576>,
    /// Timeout for the TLS handshake, in seconds. Then the connection is closed.
    pub handshake_timeout_seconds: BoundedInt<1, 300>,
    /// Timeout between the handshake and the head of the first request, in seconds. Then the connection is
    /// closed.
    pub first_request_timeout_seconds: BoundedInt<1, 300>,
    /// Idle time of a connection before it is closed gracefully, in seconds. Keep it above 90: the API server
    /// closes idle connections after 90 s, so no request can race our close.
    pub idle_timeout_seconds: BoundedInt<1, 86_400>,
    /// Timeout for a client to read a response, in seconds. Then the connection is closed.
    pub answer_timeout_seconds: BoundedInt<1, 300>,
    /// Maximum size of a request head, in bytes. Larger ones are rejected with 431. The API server's are
    /// below 1 KiB.
    pub head_max_bytes: BoundedInt<{ 8 * KIB }, MIB>,
    /// Maximum number of header fields of an HTTP/1.1 request. Requests with more are rejected with 431.
    pub header_fields_max: BoundedInt<16, 1_024>,
    /// Limits for HTTP/2.
    pub http2: Http2Limits,
    /// Limits for the metrics port.
    pub metrics: MetricsLimits,
}

/// Limits for one HTTP/2 connection.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Http2Limits {
    /// Concurrent requests on one connection. The server rejects further ones; clients may retry them.
    pub streams_max: BoundedInt<1, 65_536>,
    /// Requests that a client may open and reset before they are accepted. One more closes the connection
    /// (CVE-2023-44487).
    pub pending_resets_max: BoundedInt<1, 65_536>,
    /// Requests on one connection that may violate the protocol. One more closes the connection.
    pub faulty_streams_max: BoundedInt<1, 1_048_576>,
    /// Maximum frame size, in bytes. A larger frame closes the connection.
    pub frame_max_bytes: BoundedInt<{ 16 * KIB }, MIB>,
    /// Flow-control window of one request, in bytes: how much a client may send before the server reads it.
    pub stream_window_bytes: BoundedInt<{ 64 * KIB }, { 64 * MIB }>,
    /// Flow-control window of a connection, in bytes, for all its requests together. It bounds the unread
    /// data that one connection can make the server buffer.
    pub connection_window_bytes: BoundedInt<{ 64 * KIB }, { 64 * MIB }>,
    /// Idle time after which a client is pinged, in seconds.
    pub ping_interval_seconds: BoundedInt<1, 3_600>,
    /// Timeout for the response to a ping, in seconds. Then the connection is closed.
    pub ping_timeout_seconds: BoundedInt<1, 300>,
}

/// Limits for the metrics port.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MetricsLimits {
    /// Open connections. A further one closes the oldest of the client address with the most connections.
    pub connections_max: BoundedInt<1, 1_024>,
    /// Open connections from one client address. A further one closes the oldest of them.
    pub connections_per_peer_max: BoundedInt<1, 1_024>,
    /// Timeout for reading the head of a request, in seconds. Then the connection is closed.
    pub head_timeout_seconds: BoundedInt<1, 300>,
    /// Maximum lifetime of a connection, in seconds. Prometheus' default scrape timeout is 10 s.
    pub connection_timeout_seconds: BoundedInt<1, 300>,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            // Several times the share of one address, so that no few addresses take all of it.
            requests_max: const { BoundedInt::from_default(1_024) },
            // An API server has at most a few hundred writes in flight.
            requests_per_peer_max: const { BoundedInt::from_default(256) },
            bodies_max_bytes: const { BoundedInt::from_default(128 * MIB) },
            bodies_per_peer_max_bytes: const { BoundedInt::from_default(64 * MIB) },
            retry_after_seconds: const { BoundedInt::from_default(1) },
            body_timeout_seconds: const { BoundedInt::from_default(5) },
            // Reviewing a body of this size takes a few milliseconds.
            large_body_min_bytes: const { BoundedInt::from_default(256 * KIB) },
            large_bodies_max: const { BoundedInt::from_default(2) },
            answer_reserve_milliseconds: const { BoundedInt::from_default(1_000) },
            retry_reserve_milliseconds: const { BoundedInt::from_default(500) },
            negative_cache_milliseconds: const { BoundedInt::from_default(1_000) },
            negative_cache_entries_max: const { BoundedInt::from_default(1_024) },
            stores_lag_max_milliseconds: const { BoundedInt::from_default(1_000) },
            log_interval_seconds: const { BoundedInt::from_default(1) },
            connections_max: const { BoundedInt::from_default(4_096) },
            connections_per_peer_max: const { BoundedInt::from_default(256) },
            handshake_timeout_seconds: const { BoundedInt::from_default(10) },
            first_request_timeout_seconds: const { BoundedInt::from_default(10) },
            idle_timeout_seconds: const { BoundedInt::from_default(120) },
            answer_timeout_seconds: const { BoundedInt::from_default(10) },
            head_max_bytes: const { BoundedInt::from_default(16 * KIB) },
            header_fields_max: const { BoundedInt::from_default(64) },
            http2: Http2Limits::default(),
            metrics: MetricsLimits::default(),
        }
    }
}

impl Default for Http2Limits {
    fn default() -> Self {
        Self {
            // The default of Go's servers.
            streams_max: const { BoundedInt::from_default(250) },
            pending_resets_max: const { BoundedInt::from_default(20) },
            faulty_streams_max: const { BoundedInt::from_default(1_024) },
            // The smallest value that the protocol allows.
            frame_max_bytes: const { BoundedInt::from_default(16 * KIB) },
            stream_window_bytes: const { BoundedInt::from_default(MIB) },
            connection_window_bytes: const { BoundedInt::from_default(MIB) },
            ping_interval_seconds: const { BoundedInt::from_default(20) },
            ping_timeout_seconds: const { BoundedInt::from_default(10) },
        }
    }
}

impl Default for MetricsLimits {
    fn default() -> Self {
        Self {
            connections_max: const { BoundedInt::from_default(16) },
            connections_per_peer_max: const { BoundedInt::from_default(8) },
            head_timeout_seconds: const { BoundedInt::from_default(5) },
            connection_timeout_seconds: const { BoundedInt::from_default(10) },
        }
    }
}

impl LimitSettings {
    /// Checks the limits against each other and against the limit for one body.
    pub(super) fn check(&self, body_limit_bytes: u64) -> Result<(), ConfigConflict> {
        let limits = self;
        let pairs = [
            BoundCheck {
                key: "webhook.bodyLimitBytes",
                value: body_limit_bytes,
                bound_key: "webhook.limits.bodiesMaxBytes",
                bound: limits.bodies_max_bytes.get(),
                why: "a body of this size could never be buffered",
            },
            BoundCheck {
                key: "webhook.bodyLimitBytes",
                value: body_limit_bytes,
                bound_key: "webhook.limits.bodiesPerPeerMaxBytes",
                bound: limits.bodies_per_peer_max_bytes.get(),
                why: "a body of this size could never be buffered",
            },
            BoundCheck {
                key: "webhook.limits.retryReserveMilliseconds",
                value: limits.retry_reserve_milliseconds.get(),
                bound_key: "webhook.limits.answerReserveMilliseconds",
                bound: limits.answer_reserve_milliseconds.get(),
                why: "the response could arrive after the timeout of the request",
            },
            BoundCheck {
                key: "webhook.limits.metrics.headTimeoutSeconds",
                value: limits.metrics.head_timeout_seconds.get(),
                bound_key: "webhook.limits.metrics.connectionTimeoutSeconds",
                bound: limits.metrics.connection_timeout_seconds.get(),
                why: "the connection would always end first",
            },
            BoundCheck {
                key: "webhook.limits.http2.frameMaxBytes",
                value: limits.http2.frame_max_bytes.get(),
                bound_key: "webhook.limits.http2.streamWindowBytes",
                bound: limits.http2.stream_window_bytes.get(),
                why: "no frame of that size could ever be sent",
            },
            BoundCheck {
                key: "webhook.limits.http2.streamWindowBytes",
                value: limits.http2.stream_window_bytes.get(),
                bound_key: "webhook.limits.http2.connectionWindowBytes",
                bound: limits.http2.connection_window_bytes.get(),
                why: "no request could ever use its window",
            },
        ];
        ConfigConflict::reject_above(pairs)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::config::WebhookSettings;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(settings: Value, expected: Option<(&str, &str)>) {
        let settings: WebhookSettings = serde_json::from_value(settings).unwrap();
        let found = settings.limits.check(settings.body_limit_bytes).err();
        assert_eq!(found.as_ref().map(ConfigConflict::keys), expected);
        if let (Some(found), Some((key, bound_key))) = (found, expected) {
            let text = found.to_string();
            assert!(text.contains(key) && text.contains(bound_key), "{text}");
        }
    }

    #[test]
    fn default_limits_do_not_conflict() {
        check(json!({}), None);
    }

    #[test]
    fn conflicting_limits_error_names_both_keys() {
        let mib = |count: u64| count * MIB;
        check(
            json!({"bodyLimitBytes": mib(2), "limits": {"bodiesMaxBytes": mib(2)}}),
            None,
        );
        check(
            json!({"bodyLimitBytes": mib(2) + 1, "limits": {"bodiesMaxBytes": mib(2)}}),
            Some(("webhook.bodyLimitBytes", "webhook.limits.bodiesMaxBytes")),
        );
        check(
            json!({"limits": {"retryReserveMilliseconds": 1_001}}),
            Some((
                "webhook.limits.retryReserveMilliseconds",
                "webhook.limits.answerReserveMilliseconds",
            )),
        );
        check(
            json!({"limits": {"metrics": {"headTimeoutSeconds": 11}}}),
            Some((
                "webhook.limits.metrics.headTimeoutSeconds",
                "webhook.limits.metrics.connectionTimeoutSeconds",
            )),
        );
        check(
            json!({"limits": {"http2": {"frameMaxBytes": 65_537, "streamWindowBytes": 65_536}}}),
            Some((
                "webhook.limits.http2.frameMaxBytes",
                "webhook.limits.http2.streamWindowBytes",
            )),
        );
        check(
            json!({"limits": {"http2": {"streamWindowBytes": mib(2)}}}),
            Some((
                "webhook.limits.http2.streamWindowBytes",
                "webhook.limits.http2.connectionWindowBytes",
            )),
        );
        // Then no body counts as large, which is valid.
        check(
            json!({"bodyLimitBytes": 65_536, "limits": {"largeBodyMinBytes": mib(64)}}),
            None,
        );
    }
}
