//! Whether the server should be sent requests: it is not about to stop, and who connects as the API
//! server does gets through.
//!
//! Whether the stores are complete is known to [`crate::stores::Readiness`].

use crate::error_chain::ErrorChain;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

mod handshake;

pub use handshake::SelfCheckError;

/// What the server knows about itself.
#[derive(Debug, Default)]
pub struct Health {
    is_stopping: AtomicBool,
    /// Why no connection gets through; `None` when one does, or when nobody checks.
    self_check_error: Mutex<Option<String>>,
    /// What is wrong with certificates that come from a Secret.
    certificate_error: Mutex<Option<String>>,
}

impl Health {
    /// A server that is not ready before its first self-check.
    #[must_use]
    pub fn unchecked() -> Self {
        Self {
            is_stopping: AtomicBool::new(false),
            self_check_error: Mutex::new(Some("not checked yet".to_owned())),
            certificate_error: Mutex::default(),
        }
    }

    /// From now on the server is not ready, whatever else holds.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Whether the server is about to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Why the server should not be sent requests; empty when it should.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.is_stopping() {
            problems.push("stopping".to_owned());
        }
        let certificates = &self.certificate_error;
        let certificates = certificates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = &*certificates {
            problems.push(format!("certificates: {fault}"));
        }
        let fault = self
            .self_check_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = &*fault {
            problems.push(format!("self-check: {fault}"));
        }
        problems
    }

    /// Takes what is wrong with the certificates; `None` when all is well.
    pub(crate) fn set_certificate_error(&self, fault: Option<String>) {
        let certificates = &self.certificate_error;
        *certificates.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Takes the outcome of a self-check; a change is logged.
    fn record_self_check(&self, outcome: Result<(), SelfCheckError>) {
        let now = outcome.err().map(|error| ErrorChain(&error).to_string());
        let mut fault = self
            .self_check_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *fault != now {
            if let Some(reason) = &now {
                tracing::warn!(reason, "the server does not reach itself: unready");
            } else {
                tracing::info!("the server reaches itself");
            }
        }
        *fault = now;
    }
}

/// A CA bundle in memory; `None` when there is none yet.
pub type CaBundle = Option<Arc<[CertificateDer<'static>]>>;

/// By what the certificate is judged.
#[derive(Clone, Debug)]
pub enum SelfCheckTrust {
    /// It must be signed by a certificate of this PEM file, which is read again at each check.
    Ca(PathBuf),
    /// It must be signed by a certificate of this bundle, as it is at each check. When the bundle
    /// changes it is time for one.
    Bundle(watch::Receiver<CaBundle>),
    /// Any will do: who checks it is not known here. The server must still have its key.
    Any,
}

impl SelfCheckTrust {
    /// Completes when another bundle is in force.
    async fn changed(&mut self) {
        if let Self::Bundle(bundle) = self
            && bundle.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Where the server connects to itself, and what it expects there.
#[derive(Clone, Debug)]
pub struct SelfCheck {
    /// The listener's own address.
    pub address: SocketAddr,
    /// A name that the certificate must hold.
    pub name: ServerName<'static>,
    /// By what the certificate is judged.
    pub trust: SelfCheckTrust,
    /// How often the server connects.
    pub interval: Duration,
    /// Longest for a connection.
    pub timeout: Duration,
}

impl SelfCheck {
    /// Connects again and again and tells `health`, until the server is about to stop.
    pub async fn run_periodically(mut self, health: Arc<Health>) {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.trust.changed() => {}
            }
            if health.is_stopping() {
                return;
            }
            let outcome = self.run().await;
            // The listener may have closed meanwhile, which is no fault.
            if !health.is_stopping() {
                health.record_self_check(outcome);
            }
        }
    }

    /// Connects once.
    ///
    /// # Errors
    ///
    /// A [`CheckError`] when no handshake succeeds in time.
    pub async fn run(&self) -> Result<(), SelfCheckError> {
        let handshake = handshake::connect(
            connectable_address(self.address),
            self.name.clone(),
            &self.trust,
        );
        tokio::time::timeout(self.timeout, handshake)
            .await
            .map_err(|_| SelfCheckError::Timeout(self.timeout))?
    }
}

/// The address to connect to for one that is listened on: all addresses include the own one.
fn connectable_address(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// Completes when the server is to accept no more: some time after `told`. Until then it is unready
/// and goes on serving, so that nobody is sent to a closed door.
pub async fn drain_delay(health: Arc<Health>, told: impl Future<Output = ()>, delay: Duration) {
    told.await;
    health.stop();
    tokio::time::sleep(delay).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_address(listened: &str, reached: &str) {
        let parsed = |text: &str| text.parse::<SocketAddr>();
        assert_eq!(parsed(listened).map(connectable_address), parsed(reached));
    }

    #[test]
    fn unspecified_address_becomes_loopback() {
        check_address("0.0.0.0:1", "127.0.0.1:1");
        check_address("[::]:1", "[::1]:1");
        check_address("10.0.0.1:1", "10.0.0.1:1");
    }

    #[test]
    fn health_problems_are_set_and_cleared() {
        let health = Health::unchecked();
        assert_eq!(health.problems(), ["self-check: not checked yet"]);
        health.record_self_check(Ok(()));
        assert_eq!(health.problems(), [""; 0]);
        health.record_self_check(Err(SelfCheckError::Timeout(Duration::from_secs(5))));
        let fault = "self-check: no handshake within 5 s";
        assert_eq!(health.problems(), [fault]);
        health.set_certificate_error(Some("no Secret".to_owned()));
        let certificates = "certificates: no Secret";
        assert_eq!(health.problems(), [certificates, fault]);
        health.stop();
        assert_eq!(health.problems(), ["stopping", certificates, fault]);
        health.set_certificate_error(None);
        assert_eq!(health.problems(), ["stopping", fault]);
    }

    #[tokio::test(start_paused = true)]
    async fn drain_delay_is_unready_before_closing() {
        let health = Arc::new(Health::default());
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        let told = async {
            let _ = told.await;
        };
        let delay = Duration::from_secs(5);
        let leaving = tokio::spawn(drain_delay(Arc::clone(&health), told, delay));
        tokio::task::yield_now().await;
        assert!(!health.is_stopping());

        let started = tokio::time::Instant::now();
        drop(tell);
        tokio::task::yield_now().await;
        assert!(health.is_stopping());
        assert!(!leaving.is_finished());
        assert!(leaving.await.is_ok());
        assert_eq!(started.elapsed(), delay);
    }
}
