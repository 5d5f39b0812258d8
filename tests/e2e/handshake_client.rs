//! A client that opens one TLS connection after another; every handshake must succeed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::https::Endpoint;
use crate::lockkeeper::Protocol;
use crate::wait;

/// Pause between two connections in milliseconds; it leaves CPU time for the load.
const PAUSE_MS: u64 = 5;

/// A running client. Dropping it stops it.
pub struct HandshakeClient {
    shared: Arc<HandshakeState>,
    thread: Option<JoinHandle<()>>,
}

struct HandshakeState {
    port: u16,
    ca: PathBuf,
    offered: &'static [&'static str],
    is_stopping: AtomicBool,
    observed: Mutex<HandshakeStats>,
}

#[derive(Clone, Default)]
struct HandshakeStats {
    handshakes: u64,
    failures: Vec<String>,
    certificate: Option<CertificateDer<'static>>,
}

impl HandshakeClient {
    /// Connects repeatedly to the server at `port`, which must have a certificate of `ca`.
    pub fn start(port: u16, ca: &Path, protocol: Protocol) -> Self {
        let shared = Arc::new(HandshakeState {
            port,
            ca: ca.to_owned(),
            offered: match protocol {
                Protocol::Http2 => &["h2"],
                Protocol::Http1 => &["http/1.1"],
            },
            is_stopping: AtomicBool::new(false),
            observed: Mutex::default(),
        });
        let dialling = Arc::clone(&shared);
        let thread = thread::spawn(move || dialling.dial());
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Waits until a new connection gets this certificate.
    #[track_caller]
    pub fn wait_for(&self, certificate: &CertificateDer<'_>) {
        let given = || {
            let seen = self.shared.stats();
            Ok((seen.certificate.as_ref() == Some(certificate)).then_some(()))
        };
        let late = || "no new connection gets the new certificate".to_owned();
        wait::until(given, late).unwrap_or_else(|e| panic!("{e}"));
    }

    /// Fails unless every handshake so far succeeded and the last one got this certificate.
    #[track_caller]
    pub fn finish(self, certificate: &CertificateDer<'_>) {
        self.wait_for(certificate);
        let seen = self.shared.stats().clone();
        assert_eq!(seen.failures, [""; 0], "of {} handshakes", seen.handshakes);
    }
}

impl Drop for HandshakeClient {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl HandshakeState {
    fn stats(&self) -> MutexGuard<'_, HandshakeStats> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dial(&self) {
        while !self.is_stopping.load(Ordering::SeqCst) {
            let given = self.handshake_once();
            let mut seen = self.stats();
            seen.handshakes += 1;
            match given {
                Ok(certificate) => seen.certificate = Some(certificate),
                Err(error) => seen.failures.push(error.to_string()),
            }
            drop(seen);
            thread::sleep(Duration::from_millis(PAUSE_MS));
        }
    }

    fn handshake_once(&self) -> io::Result<CertificateDer<'static>> {
        let endpoint = Endpoint {
            port: self.port,
            ca: &self.ca,
            token: None,
        };
        endpoint.certificate(self.offered)
    }
}
