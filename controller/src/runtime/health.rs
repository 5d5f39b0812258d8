//! The health of the event loop, for probes, and its metrics.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;

/// A handle on the running controller, for probes and metrics.
#[derive(Clone)]
pub struct Health {
    shared: Arc<HealthShared>,
}

struct HealthShared {
    status: Mutex<HealthStatus>,
    /// Requests for metrics, with the channel for the response.
    metrics_requests: Sender<tokio::sync::oneshot::Sender<String>>,
}

#[derive(Clone, Copy, Debug)]
struct HealthStatus {
    is_synced: bool,
    /// The time of the last iteration of the event loop.
    last_iteration: Instant,
}

/// An event loop without an iteration for this long is stuck.
const STUCK_AFTER: Duration = Duration::from_mins(1);

impl Health {
    /// Whether the initial lists are complete. A replica that waits for the lease is ready, too.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status().is_synced && self.is_alive()
    }

    /// Whether the event loop still iterates.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.status().last_iteration.elapsed() < STUCK_AFTER
    }

    /// The metrics in the `OpenMetrics` text format; `None` if the controller has stopped.
    pub async fn metrics(&self) -> Option<String> {
        let (answer, text) = tokio::sync::oneshot::channel();
        self.shared.metrics_requests.send(answer).await.ok()?;
        text.await.ok()
    }

    fn status(&self) -> HealthStatus {
        let status = self.shared.status.lock();
        *status.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn record_iteration(&self, is_synced: bool) {
        let status = self.shared.status.lock();
        *status.unwrap_or_else(PoisonError::into_inner) = HealthStatus {
            is_synced,
            last_iteration: Instant::now(),
        };
    }
}

pub(super) fn new_health(metrics_requests: Sender<tokio::sync::oneshot::Sender<String>>) -> Health {
    Health {
        shared: Arc::new(HealthShared {
            status: Mutex::new(HealthStatus {
                is_synced: false,
                last_iteration: Instant::now(),
            }),
            metrics_requests,
        }),
    }
}
