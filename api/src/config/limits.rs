//! What clients may take of the server, all together and each by itself.

use super::WebhookSettings;
use super::bounded::BoundedInt;
use super::conflict::{BoundCheck, ConfigConflict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// In bytes.
const KIB: u64 = 1024;

/// In bytes.
const MIB: u64 = 1024 * KIB;

/// What clients may take of the server. What is over a limit is refused early and says so; see
/// `docs/reliability.md`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Requests in work at once, those whose body is still on its way included. The next one is
    /// answered with 429. The probes have no limit.
    pub requests_max: BoundedInt<1, 65_536>,
    /// Bytes of bodies held at once, in all requests together. What would go over it is answered with
    /// 429. It must hold a body of `webhook.bodyLimitBytes`.
    pub bodies_max_bytes: BoundedInt<MIB, { 64 * 1024 * MIB }>,
    /// After how long a client that was refused with 429 is asked to come again, in seconds
    /// (`Retry-After`). The API server does so until its `timeoutSeconds` are over.
    pub retry_after_seconds: BoundedInt<1, 30>,
    /// Longest for a body to arrive, in seconds; the deadline of the review may be sooner. Then it is
    /// answered with 408. The API server sends one in milliseconds.
    pub body_timeout_seconds: BoundedInt<1, 60>,
    /// The largest body that is judged where the connections are served, in bytes. A larger one is
    /// judged on a thread of its own.
    pub large_body_min_bytes: BoundedInt<KIB, { 64 * MIB }>,
    /// Larger bodies judged at once. The others wait for their turn, until the deadline.
    pub large_bodies_max: BoundedInt<1, 256>,
    /// How much sooner than the `timeout` of the request the answer is given, in milliseconds: it has a
    /// way to go. It is never more than half of the timeout.
    pub answer_reserve_milliseconds: BoundedInt<100, 10_000>,
    /// The most that rules may take of that reserve when they run again after the API server was asked
    /// for an object, in milliseconds.
    pub retry_reserve_milliseconds: BoundedInt<1, 10_000>,
    /// How long it is remembered that the API server does not have an object, in milliseconds. Until
    /// then nobody asks again, and a PriorityClass that was just made may not be seen.
    pub negative_cache_milliseconds: BoundedInt<0, 60_000>,
    /// The names remembered like this. Past it all are forgotten.
    pub negative_cache_entries_max: BoundedInt<1, 1_048_576>,
    /// How long a change of the stores waits for large objects that are being judged, in milliseconds.
    /// Then it insists, and requests wait for it.
    pub stores_lag_max_milliseconds: BoundedInt<0, 60_000>,
    /// Shortest between two log lines about the same limit, in seconds. The line has the count so far.
    pub log_interval_seconds: BoundedInt<1, 3_600>,
    /// Connections open at once, those in the handshake included. The next ones wait in the kernel's
    /// queue. Each takes a file descriptor.
    pub connections_max: BoundedInt<1, 1_048_576>,
    /// Longest a client may take for the TLS handshake, in seconds. Then the connection is closed.
    pub handshake_timeout_seconds: BoundedInt<1, 300>,
    /// Longest from the handshake to the head of the first request, in seconds. Then the connection is
    /// closed.
    pub first_request_timeout_seconds: BoundedInt<1, 300>,
    /// Longest between two requests on one connection, in seconds. Then it is closed in good order.
    /// Keep it above 90: after those the API server closes by itself, and a request of its own
    /// cannot be on its way into a closed door.
    pub idle_timeout_seconds: BoundedInt<1, 86_400>,
    /// Longest for a client to take an answer that is ready, in seconds. Then the connection is closed.
    pub answer_timeout_seconds: BoundedInt<1, 300>,
    /// The largest head of a request, in bytes. A larger one is answered with 431. The API server's are
    /// below 1 KiB.
    pub head_max_bytes: BoundedInt<{ 8 * KIB }, MIB>,
    /// Header fields of a request on HTTP/1.1. One with more is answered with 431.
    pub header_fields_max: BoundedInt<16, 1_024>,
    /// What holds on HTTP/2 alone.
    pub http2: Http2Limits,
    /// What holds on the port of the metrics.
    pub metrics: MetricsLimits,
}

/// What one client may take on a connection of HTTP/2.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Http2Limits {
    /// Requests open at once on one connection. The next one is refused and may be sent again.
    pub streams_max: BoundedInt<1, 65_536>,
    /// Requests that a client may open and take back before anybody has looked at them. The next one
    /// ends the connection (CVE-2023-44487).
    pub pending_resets_max: BoundedInt<1, 65_536>,
    /// Requests on one connection that may break the protocol. The next one ends it.
    pub faulty_streams_max: BoundedInt<1, 1_048_576>,
    /// The largest frame, in bytes. A larger one ends the connection.
    pub frame_max_bytes: BoundedInt<{ 16 * KIB }, MIB>,
    /// What a client may send ahead on one request before it is read, in bytes. Then it has to wait.
    pub stream_window_bytes: BoundedInt<{ 64 * KIB }, { 64 * MIB }>,
    /// What a client may send ahead on all requests of a connection together, in bytes. It is what each
    /// connection can make the server hold unread.
    pub connection_window_bytes: BoundedInt<{ 64 * KIB }, { 64 * MIB }>,
    /// Silence before a client is asked whether it lives, in seconds.
    pub ping_interval_seconds: BoundedInt<1, 3_600>,
    /// Longest for it to say so, in seconds. Then the connection is closed.
    pub ping_timeout_seconds: BoundedInt<1, 300>,
}

/// What scrapers may take of the port of the metrics.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MetricsLimits {
    /// Connections open at once. The next ones wait in the kernel's queue.
    pub connections_max: BoundedInt<1, 1_024>,
    /// Longest for the head of the request to arrive, in seconds. Then the connection is closed.
    pub head_timeout_seconds: BoundedInt<1, 300>,
    /// Longest for a connection in all, in seconds. Prometheus gives up after ten by default.
    pub connection_timeout_seconds: BoundedInt<1, 300>,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            requests_max: const { BoundedInt::from_default(256) },
            bodies_max_bytes: const { BoundedInt::from_default(128 * MIB) },
            retry_after_seconds: const { BoundedInt::from_default(1) },
            body_timeout_seconds: const { BoundedInt::from_default(5) },
            // A few milliseconds of work.
            large_body_min_bytes: const { BoundedInt::from_default(256 * KIB) },
            large_bodies_max: const { BoundedInt::from_default(2) },
            answer_reserve_milliseconds: const { BoundedInt::from_default(1_000) },
            retry_reserve_milliseconds: const { BoundedInt::from_default(500) },
            negative_cache_milliseconds: const { BoundedInt::from_default(1_000) },
            negative_cache_entries_max: const { BoundedInt::from_default(1_024) },
            stores_lag_max_milliseconds: const { BoundedInt::from_default(1_000) },
            log_interval_seconds: const { BoundedInt::from_default(1) },
            connections_max: const { BoundedInt::from_default(4_096) },
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
            // As many as Go's own servers take.
            streams_max: const { BoundedInt::from_default(250) },
            pending_resets_max: const { BoundedInt::from_default(20) },
            faulty_streams_max: const { BoundedInt::from_default(1_024) },
            // The smallest limit that the protocol knows.
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
            head_timeout_seconds: const { BoundedInt::from_default(5) },
            connection_timeout_seconds: const { BoundedInt::from_default(10) },
        }
    }
}

impl WebhookSettings {
    pub(super) fn check(&self) -> Result<(), ConfigConflict> {
        let limits = &self.limits;
        let pairs = [
            BoundCheck {
                key: "webhook.bodyLimitBytes",
                value: self.body_limit_bytes,
                bound_key: "webhook.limits.bodiesMaxBytes",
                bound: limits.bodies_max_bytes.get(),
                why: "a body that large could never be held",
            },
            BoundCheck {
                key: "webhook.limits.secondLookMaxMilliseconds",
                value: limits.retry_reserve_milliseconds.get(),
                bound_key: "webhook.limits.answerReserveMilliseconds",
                bound: limits.answer_reserve_milliseconds.get(),
                why: "an answer could come after the timeout of the request",
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
    use serde_json::{Value, json};

    #[track_caller]
    fn check(settings: Value, wrong: Option<(&str, &str)>) {
        let settings: WebhookSettings = serde_json::from_value(settings).unwrap();
        let found = settings.check().err();
        assert_eq!(found.as_ref().map(ConfigConflict::keys), wrong);
        if let (Some(found), Some((key, bound_key))) = (found, wrong) {
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
            json!({"limits": {"secondLookMaxMilliseconds": 1_001}}),
            Some((
                "webhook.limits.secondLookMaxMilliseconds",
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
        // All bodies are light then, which is no contradiction.
        check(
            json!({"bodyLimitBytes": 65_536, "limits": {"lightBodyMaxBytes": mib(64)}}),
            None,
        );
    }
}
