//! The health of the process: not shutting down, and without errors of certificates and self-check.
//!
//! Whether the webhook's stores have synced is recorded in `lockkeeper_webhook::stores::StoreReadiness`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The health of the server, shared by the components that set it and the readiness probe that reads it.
#[derive(Debug, Default)]
pub struct Health {
    is_stopping: AtomicBool,
    /// Why the server cannot connect to itself; `None` when it can, or when there is no self-check.
    self_check_error: Mutex<Option<String>>,
    /// The problem with the certificates of a Secret; `None` when there is none.
    certificate_error: Mutex<Option<String>>,
}

impl Health {
    /// The health of a server that is not ready before its first self-check.
    #[must_use]
    pub fn unchecked() -> Self {
        Self {
            is_stopping: AtomicBool::new(false),
            self_check_error: Mutex::new(Some("not checked yet".to_owned())),
            certificate_error: Mutex::default(),
        }
    }

    /// Makes the server unready until the process ends, whatever the other checks report.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Returns true when the server is shutting down.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Returns the reasons why the server must not get requests; empty when it is ready.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.is_stopping() {
            problems.push("stopping".to_owned());
        }
        let parts = [
            ("certificates", &self.certificate_error),
            ("self-check", &self.self_check_error),
        ];
        for (component, error) in parts {
            let error = error.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(reason) = &*error {
                problems.push(format!("{component}: {reason}"));
            }
        }
        problems
    }

    /// Sets the problem with the certificates; `None` when there is none.
    pub fn set_certificate_error(&self, error: Option<String>) {
        let certificates = &self.certificate_error;
        *certificates.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// Sets the result of a self-check, `None` for success. A change is logged.
    pub fn set_self_check_error(&self, error: Option<String>) {
        let mut current = self
            .self_check_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *current != error {
            if let Some(reason) = &error {
                tracing::warn!(reason, "self-check failed; not ready");
            } else {
                tracing::info!("self-check succeeded");
            }
        }
        *current = error;
    }
}

/// Completes when the server must accept no more connections: `delay` after `shutdown` completes. In
/// between it is unready but still serves, until the endpoints no longer list it.
pub async fn drain_delay(health: Arc<Health>, shutdown: impl Future<Output = ()>, delay: Duration) {
    shutdown.await;
    health.stop();
    tokio::time::sleep(delay).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_problems_are_set_and_cleared() {
        let health = Health::unchecked();
        assert_eq!(health.problems(), ["self-check: not checked yet"]);
        health.set_self_check_error(None);
        assert_eq!(health.problems(), [""; 0]);
        health.set_self_check_error(Some("no handshake within 5 s".to_owned()));
        let self_check = "self-check: no handshake within 5 s";
        assert_eq!(health.problems(), [self_check]);
        health.set_certificate_error(Some("no Secret".to_owned()));
        let certificates = "certificates: no Secret";
        assert_eq!(health.problems(), [certificates, self_check]);
        health.stop();
        assert_eq!(health.problems(), ["stopping", certificates, self_check]);
        health.set_certificate_error(None);
        assert_eq!(health.problems(), ["stopping", self_check]);
    }

    #[tokio::test(start_paused = true)]
    async fn drain_delay_is_unready_before_closing() {
        let health = Arc::new(Health::default());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let shutdown = async {
            let _ = stopped.await;
        };
        let delay = Duration::from_secs(5);
        let drained = tokio::spawn(drain_delay(Arc::clone(&health), shutdown, delay));
        tokio::task::yield_now().await;
        assert!(!health.is_stopping());

        let started = tokio::time::Instant::now();
        drop(stop);
        tokio::task::yield_now().await;
        assert!(health.is_stopping());
        assert!(!drained.is_finished());
        assert!(drained.await.is_ok());
        assert_eq!(started.elapsed(), delay);
    }
}
