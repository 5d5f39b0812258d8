//! The names of a serving certificate and the times of its validity.

use super::error::SelfSignedError;
use rustls::pki_types::ServerName;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A CA or a serving certificate that expires within this many days is renewed.
pub(crate) const RENEWAL_DAYS: u64 = 30;

pub(crate) const DAY_S: u64 = 24 * 60 * 60;

/// Parses the names as a client would verify them, in the given order.
pub(crate) fn server_names(names: &[String]) -> Result<Vec<ServerName<'static>>, SelfSignedError> {
    if names.is_empty() {
        return Err(SelfSignedError::NoNames);
    }
    names
        .iter()
        .map(|name| {
            // Certificates contain names without the trailing dot of the DNS root.
            let relative = name.strip_suffix('.').unwrap_or(name);
            ServerName::try_from(relative.to_owned())
                .map_err(|_| SelfSignedError::InvalidName { name: name.clone() })
        })
        .collect()
}

/// Returns whole seconds since 1970. Errors if a CA issued now would end after X.509's last year, 9999.
pub(crate) fn unix_seconds(now: SystemTime) -> Result<u64, SelfSignedError> {
    const LAST_S: u64 = 250_000_000_000; // in the year 9892
    let since = now
        .duration_since(UNIX_EPOCH)
        .map_err(|_| SelfSignedError::ClockOutOfRange)?;
    if since > Duration::from_secs(LAST_S) {
        return Err(SelfSignedError::ClockOutOfRange);
    }
    Ok(since.as_secs())
}
