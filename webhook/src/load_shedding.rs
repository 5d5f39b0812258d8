//! What all requests together may take: places, memory, and processors.
//!
//! What is over a limit is refused at once, before its body is read: a refusal costs little, and the
//! API server, which has seconds, asks again.

use axum::body::Bytes;
use lockkeeper_api::config::LimitSettings;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

pub use crate::deadline::DeadlineReserve;

/// The limits that hold for all requests together, and what each may take of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Requests in work at once. Zero serves nobody.
    pub requests_max: usize,
    /// Bytes of bodies held at once.
    pub bodies_max_bytes: usize,
    /// After how long a refused client is asked to come again, in seconds.
    pub retry_after_seconds: u64,
    /// Longest for a body to arrive; the request's own deadline may be sooner.
    pub body_timeout: Duration,
    /// The smallest body that counts as large, in bytes.
    pub large_body_min_bytes: usize,
    /// Larger bodies judged at once. Zero judges none.
    pub heavy_max: usize,
    /// What is left of the timeout of a request when it is answered.
    pub reserve: DeadlineReserve,
    /// Shortest between two log lines about the same limit.
    pub log_interval: Duration,
}

impl From<&LimitSettings> for LoadLimits {
    fn from(settings: &LimitSettings) -> Self {
        Self {
            requests_max: settings.requests_max.count(),
            bodies_max_bytes: settings.bodies_max_bytes.count(),
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

/// What requests take at the moment, and what was refused for it.
#[derive(Debug)]
pub struct LoadShedder {
    limits: LoadLimits,
    request_permits: Arc<Semaphore>,
    large_body_permits: Arc<Semaphore>,
    buffered_bytes: AtomicUsize,
    shed: AtomicU64,
    log_throttle: LogThrottle,
}

impl Default for LoadShedder {
    fn default() -> Self {
        Self::new(LoadLimits::default())
    }
}

impl LoadShedder {
    /// Nothing in work yet.
    #[must_use]
    pub fn new(mut limits: LoadLimits) -> Self {
        limits.requests_max = limits.requests_max.min(Semaphore::MAX_PERMITS);
        limits.heavy_max = limits.heavy_max.min(Semaphore::MAX_PERMITS);
        Self {
            request_permits: Arc::new(Semaphore::new(limits.requests_max)),
            large_body_permits: Arc::new(Semaphore::new(limits.heavy_max)),
            buffered_bytes: AtomicUsize::new(0),
            shed: AtomicU64::new(0),
            log_throttle: LogThrottle::new(limits.log_interval),
            limits,
        }
    }

    /// Requests in work.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let free = self.request_permits.available_permits();
        self.limits.requests_max.saturating_sub(free)
    }

    /// Large bodies that are being judged.
    #[must_use]
    pub fn large_in_flight(&self) -> usize {
        let free = self.large_body_permits.available_permits();
        self.limits.heavy_max.saturating_sub(free)
    }

    /// Bytes of bodies that are held.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.buffered_bytes.load(Ordering::Relaxed)
    }

    /// Requests refused because too much was in work, since the start.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    pub(crate) fn limits(&self) -> &LoadLimits {
        &self.limits
    }

    /// A place for one request, until it is dropped.
    pub(crate) fn acquire(&self) -> Result<OwnedSemaphorePermit, Overloaded> {
        let place = Arc::clone(&self.request_permits).try_acquire_owned();
        place.map_err(|_| self.reject(LoadLimit::Requests(self.limits.requests_max)))
    }

    /// A place for a large body among those that are judged; `None` when none is free by the
    /// deadline.
    pub(crate) async fn acquire_large(&self, deadline: Instant) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.large_body_permits).acquire_owned();
        timeout_at(deadline, place).await.ok()?.ok()
    }

    fn reject(&self, limit: LoadLimit) -> Overloaded {
        let full = Overloaded {
            limit,
            retry_after_seconds: self.limits.retry_after_seconds,
        };
        let shed = self.shed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if self.log_throttle.is_due() {
            tracing::warn!(reason = %full, shed, "too much at once; clients are told to come again");
        }
        full
    }
}

/// A limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} in work, and no more are taken; try again in {retry_after_seconds} s")]
pub(crate) struct Overloaded {
    pub(crate) limit: LoadLimit,
    /// After how long the client is asked to come again, in seconds.
    pub(crate) retry_after_seconds: u64,
}

/// Which one it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadLimit {
    /// There is no place for one more request.
    Requests(usize),
    /// There is no memory for one more body.
    Bytes(usize),
}

impl fmt::Display for LoadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(most) => write!(f, "{most} requests are"),
            Self::Bytes(most) => write!(f, "bodies of {most} bytes are"),
        }
    }
}

/// A body that grows, and is counted while it is held.
pub(crate) struct BufferedBody {
    load: Arc<LoadShedder>,
    counted_bytes: usize,
    bytes: Bytes,
    overflow: Vec<u8>,
}

impl BufferedBody {
    pub(crate) fn new(load: &Arc<LoadShedder>) -> Self {
        Self {
            load: Arc::clone(load),
            counted_bytes: 0,
            bytes: Bytes::new(),
            overflow: Vec::new(),
        }
    }

    /// Adds what has arrived. The first piece is kept as it is: mostly it is the only one.
    pub(crate) fn push(&mut self, piece: Bytes) -> Result<(), Overloaded> {
        let most = self.load.limits.bodies_max_bytes;
        let grown = |held: usize| Some(held.saturating_add(piece.len())).filter(|sum| *sum <= most);
        let held = &self.load.buffered_bytes;
        if held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown)
            .is_err()
        {
            return Err(self.load.reject(LoadLimit::Bytes(most)));
        }
        self.counted_bytes = self.counted_bytes.saturating_add(piece.len());
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

    /// All of it.
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

/// Lets through one log line in a while.
#[derive(Debug)]
pub(crate) struct LogThrottle {
    interval: Duration,
    last: Mutex<Option<Instant>>,
}

impl LogThrottle {
    /// Lets through one line an interval.
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            last: Mutex::new(None),
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= self.interval);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
