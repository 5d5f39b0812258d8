//! Load shedding: limits on requests in flight, buffered bytes and large bodies.
//!
//! A request over a limit is rejected with 429 before its body is read: that is cheap, and the API server
//! retries.

use crate::peer_shares::{PeerShare, PeerShares};
use axum::body::Bytes;
use lockkeeper_api::config::LimitSettings;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

pub use crate::deadline::DeadlineReserve;

/// Limits of all requests together, and the time limits of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Requests in flight. With zero, every request is rejected.
    pub requests_max: usize,
    /// Requests in flight from one client address.
    pub requests_per_peer_max: usize,
    /// Bytes of buffered bodies.
    pub bodies_max_bytes: usize,
    /// Bytes of buffered bodies from one client address.
    pub bodies_per_peer_max_bytes: usize,
    /// The `Retry-After` of rejected requests, in seconds.
    pub retry_after_seconds: u64,
    /// The longest time to read a body; the deadline of the request may be earlier.
    pub body_timeout: Duration,
    /// The smallest body that counts as large, in bytes: it is evaluated on a blocking thread.
    pub large_body_min_bytes: usize,
    /// Large bodies that are evaluated concurrently. With zero, none is.
    pub heavy_max: usize,
    /// Time before the timeout of a request that is reserved.
    pub reserve: DeadlineReserve,
    /// The shortest time between two log lines about overload.
    pub log_interval: Duration,
}

impl From<&LimitSettings> for LoadLimits {
    fn from(settings: &LimitSettings) -> Self {
        Self {
            requests_max: settings.requests_max.count(),
            requests_per_peer_max: settings.requests_per_peer_max.count(),
            bodies_max_bytes: settings.bodies_max_bytes.count(),
            bodies_per_peer_max_bytes: settings.bodies_per_peer_max_bytes.count(),
            retry_after_seconds: settings.retry_after_seconds.get(),
            body_timeout: settings.body_timeout_seconds.seconds(),
            large_body_min_bytes: settings.large_body_min_bytes.count(),
            heavy_max: settings.large_bodies_max.count(),
            reserve: DeadlineReserve {
                answer: settings.answer_reserve_milliseconds.milliseconds(),
                retry_reserve: settings.retry_reserve_milliseconds.milliseconds(),
            },
            log_interval: settings.log_interval_seconds.seconds(),
        }
    }
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self::from(&LimitSettings::default())
    }
}

/// Counts requests in flight and rejects those over the limits.
#[derive(Debug)]
pub struct LoadShedder {
    limits: LoadLimits,
    request_permits: Arc<Semaphore>,
    large_body_permits: Arc<Semaphore>,
    peer_requests: Arc<PeerShares>,
    peer_bytes: Arc<PeerShares>,
    buffered_bytes: AtomicUsize,
    shed: AtomicU64,
    log_throttle: LogThrottle,
    rejected: AtomicU64,
    rejected_log: LogThrottle,
}

impl Default for LoadShedder {
    fn default() -> Self {
        Self::new(LoadLimits::default())
    }
}

impl LoadShedder {
    /// Creates a load shedder without requests in flight.
    #[must_use]
    pub fn new(mut limits: LoadLimits) -> Self {
        // `Semaphore::new` panics above this number.
        limits.requests_max = limits.requests_max.min(Semaphore::MAX_PERMITS);
        limits.heavy_max = limits.heavy_max.min(Semaphore::MAX_PERMITS);
        Self {
            request_permits: Arc::new(Semaphore::new(limits.requests_max)),
            large_body_permits: Arc::new(Semaphore::new(limits.heavy_max)),
            peer_requests: PeerShares::new(limits.requests_per_peer_max),
            peer_bytes: PeerShares::new(limits.bodies_per_peer_max_bytes),
            buffered_bytes: AtomicUsize::new(0),
            shed: AtomicU64::new(0),
            log_throttle: LogThrottle::new(limits.log_interval),
            rejected: AtomicU64::new(0),
            rejected_log: LogThrottle::new(limits.log_interval),
            limits,
        }
    }

    /// Returns the number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let free = self.request_permits.available_permits();
        self.limits.requests_max.saturating_sub(free)
    }

    /// Returns the number of large bodies that are being evaluated.
    #[must_use]
    pub fn large_in_flight(&self) -> usize {
        let free = self.large_body_permits.available_permits();
        self.limits.heavy_max.saturating_sub(free)
    }

    /// Returns the bytes of buffered bodies.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.buffered_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of requests rejected for overload since the start.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    pub(crate) fn limits(&self) -> &LoadLimits {
        &self.limits
    }

    /// Returns the permit of one request, or an error if a limit is reached. A request without the address of its
    /// client, such as one that did not come over a connection, counts only against the limit of all.
    pub(crate) fn acquire(&self, peer: Option<IpAddr>) -> Result<RequestPermit, Overloaded> {
        // The share of the peer first: a peer over its share takes no permit from the others.
        let share = peer.map(|peer| {
            let share = self.peer_requests.take_one(peer);
            share.ok_or_else(|| self.reject(LoadLimit::PeerRequests(self.peer_requests.max())))
        });
        let share = share.transpose()?;
        let permit = Arc::clone(&self.request_permits).try_acquire_owned();
        let permit =
            permit.map_err(|_| self.reject(LoadLimit::Requests(self.limits.requests_max)))?;
        Ok(RequestPermit {
            _permit: permit,
            _share: share,
        })
    }

    /// Waits for the permit to evaluate a large body; `None` if there is none before the deadline.
    pub(crate) async fn acquire_large(&self, deadline: Instant) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.large_body_permits).acquire_owned();
        timeout_at(deadline, permit).await.ok()?.ok()
    }

    /// Counts a request that is rejected before it is reviewed, and logs it, at most once per interval: any pod can
    /// send such requests.
    pub(crate) fn log_rejected(&self, code: u16, cause: &'static str) {
        let rejected = self.rejected.fetch_add(1, Ordering::Relaxed);
        let rejected = rejected.saturating_add(1);
        if self.rejected_log.is_due() {
            tracing::info!(code, cause, rejected, "rejected requests");
        }
    }

    fn reject(&self, limit: LoadLimit) -> Overloaded {
        let overload = Overloaded {
            limit,
            retry_after_seconds: self.limits.retry_after_seconds,
        };
        let shed = self.shed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if self.log_throttle.is_due() {
            tracing::warn!(reason = %overload, shed, "overloaded; rejecting requests with 429");
        }
        overload
    }
}

/// The permit of one request in flight; returned when dropped.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    _permit: OwnedSemaphorePermit,
    _share: Option<PeerShare>,
}

/// A limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} in flight, which is the limit; try again in {retry_after_seconds} s")]
pub(crate) struct Overloaded {
    pub(crate) limit: LoadLimit,
    /// The `Retry-After` of the response, in seconds.
    pub(crate) retry_after_seconds: u64,
}

/// The limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadLimit {
    /// Requests in flight.
    Requests(usize),
    /// Requests in flight from one client address.
    PeerRequests(usize),
    /// Bytes of buffered bodies.
    Bytes(usize),
    /// Bytes of buffered bodies from one client address.
    PeerBytes(usize),
}

impl fmt::Display for LoadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(limit) => write!(f, "{limit} requests are"),
            Self::PeerRequests(limit) => write!(f, "{limit} requests from this address are"),
            Self::Bytes(limit) => write!(f, "bodies of {limit} bytes are"),
            Self::PeerBytes(limit) => write!(f, "bodies of {limit} bytes from this address are"),
        }
    }
}

/// A body that is being read. Its bytes count against the limit until it is dropped.
pub(crate) struct BufferedBody {
    load: Arc<LoadShedder>,
    peer_share: Option<PeerShare>,
    counted_bytes: usize,
    bytes: Bytes,
    overflow: Vec<u8>,
}

impl BufferedBody {
    pub(crate) fn new(load: &Arc<LoadShedder>, peer: Option<IpAddr>) -> Self {
        Self {
            load: Arc::clone(load),
            peer_share: peer.map(|peer| load.peer_bytes.share(peer)),
            counted_bytes: 0,
            bytes: Bytes::new(),
            overflow: Vec::new(),
        }
    }

    /// Adds a piece of the body.
    pub(crate) fn push(&mut self, piece: Bytes) -> Result<(), Overloaded> {
        if let Some(share) = &mut self.peer_share
            && !share.grow(piece.len())
        {
            let limit = self.load.limits.bodies_per_peer_max_bytes;
            return Err(self.load.reject(LoadLimit::PeerBytes(limit)));
        }
        let limit = self.load.limits.bodies_max_bytes;
        // Check and addition are one step, or two requests could exceed the limit together.
        let add = |buffered: usize| {
            Some(buffered.saturating_add(piece.len())).filter(|sum| *sum <= limit)
        };
        let buffered = &self.load.buffered_bytes;
        if buffered
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .is_err()
        {
            return Err(self.load.reject(LoadLimit::Bytes(limit)));
        }
        self.counted_bytes = self.counted_bytes.saturating_add(piece.len());
        // Usually the first piece is the only one, and is kept without a copy.
        if self.bytes.is_empty() && self.overflow.is_empty() {
            self.bytes = piece;
            return Ok(());
        }
        if self.overflow.is_empty() {
            self.overflow.extend_from_slice(&self.bytes);
            self.bytes = Bytes::new();
        }
        self.overflow.extend_from_slice(&piece);
        Ok(())
    }

    /// Returns the whole body.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.overflow.is_empty() {
            &self.bytes
        } else {
            &self.overflow
        }
    }
}

impl Drop for BufferedBody {
    fn drop(&mut self) {
        self.load
            .buffered_bytes
            .fetch_sub(self.counted_bytes, Ordering::Relaxed);
    }
}

/// The longest interval between two lines: a time that is later by a longer one may not be representable.
const LOG_INTERVAL_MAX: Duration = Duration::from_hours(24 * 365);

/// Limits log lines to one per interval, and to a number of lines at once.
#[derive(Debug)]
pub(crate) struct LogThrottle {
    interval: Duration,
    /// How far `next` may be in the future when a line is written.
    burst: Duration,
    /// The time by which the lines so far had been written at one per interval, and the next is due.
    next: Mutex<Option<Instant>>,
}

impl LogThrottle {
    /// Allows one line per interval.
    pub(crate) fn new(interval: Duration) -> Self {
        Self::with_burst(interval, 1)
    }

    /// Allows this number of lines at once, at least one, and then one per interval.
    pub(crate) fn with_burst(interval: Duration, lines: u32) -> Self {
        let interval = interval.min(LOG_INTERVAL_MAX);
        Self {
            interval,
            burst: interval.saturating_mul(lines.saturating_sub(1)),
            next: Mutex::new(None),
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        let now = Instant::now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let from = next.map_or(now, |it| it.max(now));
        let is_due = from.saturating_duration_since(now) <= self.burst;
        if is_due {
            *next = from.checked_add(self.interval);
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
