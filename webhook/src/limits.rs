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

pub use crate::deadline::Reserve;

/// The limits that hold for all requests together, and what each may take of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Requests in work at once. Zero serves nobody.
    pub requests_max: usize,
    /// Bytes of bodies held at once.
    pub bodies_max_bytes: usize,
    /// After how long a refused client is asked to come again, in seconds.
    pub retry_after_seconds: u64,
    /// Longest for a body to arrive; the request's own deadline may be sooner.
    pub body_timeout: Duration,
    /// The largest body that counts as small.
    pub light_body_max_bytes: usize,
    /// Larger bodies judged at once. Zero judges none.
    pub heavy_max: usize,
    /// What is left of the timeout of a request when it is answered.
    pub reserve: Reserve,
    /// Shortest between two log lines about the same limit.
    pub log_interval: Duration,
}

impl From<&LimitSettings> for Bounds {
    fn from(settings: &LimitSettings) -> Self {
        Self {
            requests_max: settings.requests_max.count(),
            bodies_max_bytes: settings.bodies_max_bytes.count(),
            retry_after_seconds: settings.retry_after_seconds.get(),
            body_timeout: settings.body_timeout_seconds.seconds(),
            light_body_max_bytes: settings.light_body_max_bytes.count(),
            heavy_max: settings.heavy_bodies_max.count(),
            reserve: Reserve {
                answer: settings.answer_reserve_milliseconds.milliseconds(),
                second_look_max: settings.second_look_max_milliseconds.milliseconds(),
            },
            log_interval: settings.log_interval_seconds.seconds(),
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::from(&LimitSettings::default())
    }
}

/// What requests take at the moment, and what was refused for it.
#[derive(Debug)]
pub struct Load {
    bounds: Bounds,
    places: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    held_bytes: AtomicUsize,
    shed: AtomicU64,
    told: Throttle,
}

impl Default for Load {
    fn default() -> Self {
        Self::new(Bounds::default())
    }
}

impl Load {
    /// Nothing in work yet.
    #[must_use]
    pub fn new(mut bounds: Bounds) -> Self {
        bounds.requests_max = bounds.requests_max.min(Semaphore::MAX_PERMITS);
        bounds.heavy_max = bounds.heavy_max.min(Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Semaphore::new(bounds.requests_max)),
            heavy: Arc::new(Semaphore::new(bounds.heavy_max)),
            held_bytes: AtomicUsize::new(0),
            shed: AtomicU64::new(0),
            told: Throttle::new(bounds.log_interval),
            bounds,
        }
    }

    /// Requests in work.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let free = self.places.available_permits();
        self.bounds.requests_max.saturating_sub(free)
    }

    /// Large bodies that are being judged.
    #[must_use]
    pub fn heavy_in_work(&self) -> usize {
        let free = self.heavy.available_permits();
        self.bounds.heavy_max.saturating_sub(free)
    }

    /// Bytes of bodies that are held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Requests refused because too much was in work, since the start.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.shed.load(Ordering::Relaxed)
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// A place for one request, until it is dropped.
    pub(crate) fn enter(&self) -> Result<OwnedSemaphorePermit, Full> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.map_err(|_| self.refuse(Limit::Requests(self.bounds.requests_max)))
    }

    /// A place for a large body among those that are judged; `None` when none is free by the
    /// deadline.
    pub(crate) async fn enter_heavy(&self, deadline: Instant) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.heavy).acquire_owned();
        timeout_at(deadline, place).await.ok()?.ok()
    }

    fn refuse(&self, limit: Limit) -> Full {
        let full = Full {
            limit,
            retry_after_seconds: self.bounds.retry_after_seconds,
        };
        let shed = self.shed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if self.told.is_due() {
            tracing::warn!(reason = %full, shed, "too much at once; clients are told to come again");
        }
        full
    }
}

/// A limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit} in work, and no more are taken; try again in {retry_after_seconds} s")]
pub(crate) struct Full {
    pub(crate) limit: Limit,
    /// After how long the client is asked to come again, in seconds.
    pub(crate) retry_after_seconds: u64,
}

/// Which one it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// There is no place for one more request.
    Requests(usize),
    /// There is no memory for one more body.
    Bytes(usize),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(most) => write!(f, "{most} requests are"),
            Self::Bytes(most) => write!(f, "bodies of {most} bytes are"),
        }
    }
}

/// A body that grows, and is counted while it is held.
pub(crate) struct Held {
    load: Arc<Load>,
    counted: usize,
    bytes: Bytes,
    more: Vec<u8>,
}

impl Held {
    pub(crate) fn new(load: &Arc<Load>) -> Self {
        Self {
            load: Arc::clone(load),
            counted: 0,
            bytes: Bytes::new(),
            more: Vec::new(),
        }
    }

    /// Adds what has arrived. The first piece is kept as it is: mostly it is the only one.
    pub(crate) fn push(&mut self, piece: Bytes) -> Result<(), Full> {
        let most = self.load.bounds.bodies_max_bytes;
        let grown = |held: usize| Some(held.saturating_add(piece.len())).filter(|sum| *sum <= most);
        let held = &self.load.held_bytes;
        if held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown)
            .is_err()
        {
            return Err(self.load.refuse(Limit::Bytes(most)));
        }
        self.counted = self.counted.saturating_add(piece.len());
        if self.bytes.is_empty() && self.more.is_empty() {
            self.bytes = piece;
            return Ok(());
        }
        if self.more.is_empty() {
            self.more.extend_from_slice(&self.bytes);
            self.bytes = Bytes::new();
        }
        self.more.extend_from_slice(&piece);
        Ok(())
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.more.is_empty() {
            &self.bytes
        } else {
            &self.more
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.load
            .held_bytes
            .fetch_sub(self.counted, Ordering::Relaxed);
    }
}

/// Lets through one log line in a while.
#[derive(Debug)]
pub(crate) struct Throttle {
    interval: Duration,
    last: Mutex<Option<Instant>>,
}

impl Throttle {
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
