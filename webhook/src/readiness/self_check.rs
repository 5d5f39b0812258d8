//! The self-check's loop and its address.

use super::handshake::{self, SelfCheckError};
use super::trust::SelfCheckTrust;
use lockkeeper_kube_support::error_chain::ErrorChain;
use lockkeeper_kube_support::health::Health;
use rustls::pki_types::ServerName;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// The server's connection to itself, and the certificate it expects there.
#[derive(Clone, Debug)]
pub struct SelfCheck {
    /// The listener's own address.
    pub address: SocketAddr,
    /// A name that the certificate must contain.
    pub name: ServerName<'static>,
    /// The CA that the certificate is verified against.
    pub trust: SelfCheckTrust,
    /// Time between two checks.
    pub interval: Duration,
    /// Longest duration of a check.
    pub timeout: Duration,
}

impl SelfCheck {
    /// Checks periodically and records each result in `health`, until the server shuts down.
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
            let result = self.run().await;
            // The listener may have closed during the check, which is no failure.
            if !health.is_stopping() {
                let error = result.err().map(|error| ErrorChain(&error).to_string());
                health.set_self_check_error(error);
            }
        }
    }

    /// Checks once.
    ///
    /// # Errors
    ///
    /// A [`SelfCheckError`] when no handshake succeeds within the timeout.
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

/// Returns the address to connect to for a listener's address: the loopback one for "all addresses".
fn connectable_address(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_address(listener: &str, expected: &str) {
        let parsed = |text: &str| text.parse::<SocketAddr>();
        assert_eq!(parsed(listener).map(connectable_address), parsed(expected));
    }

    #[test]
    fn unspecified_address_becomes_loopback() {
        check_address("0.0.0.0:1", "127.0.0.1:1");
        check_address("[::]:1", "[::1]:1");
        check_address("10.0.0.1:1", "10.0.0.1:1");
    }
}
