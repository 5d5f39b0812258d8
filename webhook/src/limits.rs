//! What all requests together may take: places, memory, and processors.
//!
//! What is over a limit is refused at once, before its body is read: a refusal costs little, and the
//! API server, which has seconds, asks again.

use axum::body::Bytes;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// Requests in work at once, those whose body is still on its way included.
pub const REQUESTS_MAX: usize = 256;

/// Bytes of bodies held at once, in all requests together: 128 MiB.
pub const BODIES_MAX_BYTES: usize = 128 * 1024 * 1024;

/// Longest for a body to arrive, in seconds. The API server sends one in milliseconds; who takes
/// longer keeps a place from others.
pub const BODY_TIMEOUT_SECONDS: u64 = 5;

/// The largest body that is judged where the connections are served, in bytes: 256 KiB, a few
/// milliseconds of work.
pub const LIGHT_BODY_MAX_BYTES: usize = 256 * 1024;

/// Larger bodies judged at once. The others wait, and the small ones do not wait for them.
pub const HEAVY_MAX: usize = 2;

/// After how long a refused client is asked to come again, in seconds.
pub const RETRY_AFTER_SECONDS: u64 = 1;

/// Shortest between two log lines about the same limit, in seconds.
const LOG_INTERVAL_SECONDS: u64 = 1;

/// The limits that hold for all requests together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Requests in work at once. Zero serves nobody.
    pub requests_max: usize,
    /// Bytes of bodies held at once.
    pub bodies_max_bytes: usize,
    /// Longest for a body to arrive; the request's own deadline may be sooner.
    pub body_timeout: Duration,
    /// The largest body that counts as small.
    pub light_body_max_bytes: usize,
    /// Larger bodies judged at once. Zero judges none.
    pub heavy_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            requests_max: REQUESTS_MAX,
            bodies_max_bytes: BODIES_MAX_BYTES,
            body_timeout: Duration::from_secs(BODY_TIMEOUT_SECONDS),
            light_body_max_bytes: LIGHT_BODY_MAX_BYTES,
            heavy_max: HEAVY_MAX,
        }
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
            bounds,
            held_bytes: AtomicUsize::new(0),
            shed: AtomicU64::new(0),
            told: Throttle::default(),
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
        place.map_err(|_| self.refuse(Full::Requests(self.bounds.requests_max)))
    }

    /// A place for a large body among those that are judged; `None` when none is free by the
    /// deadline.
    pub(crate) async fn enter_heavy(&self, deadline: Instant) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.heavy).acquire_owned();
        timeout_at(deadline, place).await.ok()?.ok()
    }

    fn refuse(&self, full: Full) -> Full {
        let shed = self.shed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if self.told.is_due() {
            tracing::warn!(reason = %full, shed, "too much at once; clients are told to come again");
        }
        full
    }
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// There is no place for one more request.
    #[error(
        "{0} requests are in work, and no more are taken; try again in {RETRY_AFTER_SECONDS} s"
    )]
    Requests(usize),
    /// There is no memory for one more body.
    #[error(
        "bodies of {0} bytes are in work, and no more are taken; \
         try again in {RETRY_AFTER_SECONDS} s"
    )]
    Bytes(usize),
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
            return Err(self.load.refuse(Full::Bytes(most)));
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
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Option<Instant>>);

impl Throttle {
    pub(crate) fn is_due(&self) -> bool {
        let interval = Duration::from_secs(LOG_INTERVAL_SECONDS);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= interval);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
