//! Reasons for which this process must not lead although it can renew the Lease.

use crate::{ObjectRef, WriteResult};
use lockkeeper_kube_support::api_client::WatchAges;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The longest time without a response to a watch. A watch starts again every 20 s, and a dead connection is
/// noticed within 45 s, so a longer silence means that decisions would be based on outdated objects.
const WATCH_AGE_MAX: Duration = Duration::from_mins(1);

/// The longest time in which no write got a response.
const WRITE_FAILURES_MAX: Duration = Duration::from_mins(1);

/// The number of objects whose writes must have failed: a single one may fail by itself, such as for its size.
const FAILED_OBJECTS_MIN: usize = 2;

/// Whether this process may lead. Clones share the state.
#[derive(Clone)]
pub(super) struct LeadershipGate {
    watches: WatchAges,
    /// How long another replica gets to acquire the lease after this one gave it up.
    pause: Duration,
    writes: Arc<Mutex<WriteHealth>>,
}

#[derive(Default)]
struct WriteHealth {
    failing_since: Option<Instant>,
    /// The objects whose writes failed since then, at most [`FAILED_OBJECTS_MIN`].
    failed: BTreeSet<ObjectRef>,
    blocked_until: Option<Instant>,
}

impl LeadershipGate {
    pub(super) fn new(watches: WatchAges, pause: Duration) -> Self {
        Self {
            watches,
            pause,
            writes: Arc::default(),
        }
    }

    /// Whether this process may lead now.
    pub(super) fn is_open(&self) -> bool {
        let is_blocked = self.lock(|writes| {
            let now = Instant::now();
            writes.blocked_until.is_some_and(|until| until > now)
        });
        let oldest = self.watches.oldest();
        !is_blocked && oldest.is_none_or(|(_, age)| age <= WATCH_AGE_MAX)
    }

    /// Records the result of a write. Gives up the leadership if no write of several objects got a response for a
    /// minute: another replica may reach an API server that this one does not.
    pub(super) fn record_write(&self, object: &ObjectRef, result: &WriteResult) {
        let now = Instant::now();
        let is_blocked = self.lock(|writes| {
            if !matches!(result, WriteResult::Failed(_) | WriteResult::ServerError(_)) {
                writes.failing_since = None;
                writes.failed.clear();
                return false;
            }
            let since = *writes.failing_since.get_or_insert(now);
            if writes.failed.len() < FAILED_OBJECTS_MIN {
                writes.failed.insert(object.clone());
            }
            let is_failing = writes.failed.len() >= FAILED_OBJECTS_MIN
                && now.duration_since(since) >= WRITE_FAILURES_MAX;
            if is_failing {
                *writes = WriteHealth {
                    blocked_until: Some(now + self.pause),
                    ..WriteHealth::default()
                };
            }
            is_failing
        });
        if is_blocked {
            let seconds = WRITE_FAILURES_MAX.as_secs();
            tracing::warn!(seconds, "all writes failed; giving up the leadership");
        }
    }

    fn lock<T>(&self, change: impl FnOnce(&mut WriteHealth) -> T) -> T {
        change(&mut self.writes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    fn object(name: &str) -> ObjectRef {
        ObjectRef::Cohort(name.to_owned())
    }

    fn failed() -> WriteResult {
        WriteResult::Failed(String::new())
    }

    #[tokio::test(start_paused = true)]
    async fn gate_closes_after_a_minute_of_failed_writes_and_opens_again() {
        let pause = Duration::from_secs(30);
        let gate = LeadershipGate::new(WatchAges::default(), pause);
        gate.record_write(&object("a"), &failed());
        tokio::time::advance(WRITE_FAILURES_MAX).await;
        // A single object may fail by itself.
        gate.record_write(&object("a"), &failed());
        assert!(gate.is_open());
        gate.record_write(&object("b"), &failed());
        assert!(!gate.is_open());
        tokio::time::advance(pause).await;
        assert!(gate.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn gate_stays_open_while_some_write_gets_a_response() {
        let gate = LeadershipGate::new(WatchAges::default(), Duration::from_secs(30));
        for _ in 0..10 {
            gate.record_write(&object("a"), &failed());
            gate.record_write(&object("b"), &failed());
            gate.record_write(&object("c"), &WriteResult::Conflict);
            tokio::time::advance(WRITE_FAILURES_MAX).await;
        }
        assert!(gate.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn gate_is_closed_while_a_watch_is_too_old() {
        let watches = WatchAges::default();
        let gate = LeadershipGate::new(watches.clone(), Duration::from_secs(30));
        watches.record("jobs.batch".to_owned(), StatusCode::OK);
        tokio::time::advance(WATCH_AGE_MAX).await;
        assert!(gate.is_open());
        // One watch is enough, although the others are answered.
        watches.record("workloads.lockkeeper.dev".to_owned(), StatusCode::OK);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!gate.is_open());
        watches.record("jobs.batch".to_owned(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!gate.is_open());
        watches.record("jobs.batch".to_owned(), StatusCode::OK);
        assert!(gate.is_open());
    }
}
