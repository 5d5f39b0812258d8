//! A CA of its own and a serving certificate, in a private directory: what the
//! server needs to run where there is no cluster and no cert-manager.
//!
//! [`ensure`] may be called at every start. It keeps the CA for as long as it
//! can, so a user's `--cacert ca.crt` goes on working, and renews only the
//! serving certificate. It overwrites nothing that it cannot have written: a
//! directory without a `ca.key`, or with a file it cannot read, is refused.
//!
//! Unix only: the directory's permissions are the protection of the keys.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::ServerName;

use crate::tls::TlsError;

mod ca;
mod directory;
pub(crate) mod issue;
mod renewal;
mod serving_certificate;

use ca::CaCertificate;
use directory::CertificateDirectory;

pub use renewal::{RENEWAL_CHECK_SECONDS, RenewalTask};

/// A CA or a serving certificate with less than this left is made anew.
pub(crate) const RENEWAL_DAYS: u64 = 30;

pub(crate) const DAY_S: u64 = 24 * 60 * 60;

const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// What a server and its clients need of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificatePaths {
    /// `ca.crt`: what a client trusts (`curl --cacert`, a `caBundle`).
    pub ca: PathBuf,
    /// `tls.crt`: the serving certificate.
    pub certificate: PathBuf,
    /// `tls.key`: the serving certificate's key.
    pub key: PathBuf,
}

/// Why there is no usable certificate in the directory, and what to do.
///
/// The texts are complete: a reason is part of its text, and there is no
/// `source()` to print after it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfSignedError {
    /// When the caller gives no name at all.
    #[error("no name to put into the serving certificate; give at least one, such as localhost")]
    NoNames,
    /// When a name is neither a DNS name nor an IP address.
    #[error("{name:?} is neither a DNS name nor an IP address; wildcards aren't made")]
    InvalidName {
        /// The name as given.
        name: String,
    },
    /// When the clock stands where no certificate can begin or end.
    #[error("the clock is before 1970 or after 9900; set it and start again")]
    ClockOutOfRange,
    /// When other users may look into the directory or change it.
    #[error("{directory} is open to other users (mode {mode:04o}); run: chmod 700 {directory}")]
    InsecurePermissions {
        /// The directory.
        directory: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// When another process holds the directory for longer than this one waits.
    #[error("{directory} is in use by another process starting up; try again when it is done")]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// When the system refuses to make, lock or write something.
    #[error(
        "cannot {action} {path}: {reason}; check its owner and free space, or name another directory"
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// When a file that belongs to the others is gone, so they may be of another's making.
    #[error("{missing} is missing beside {found}; put it back, or name an empty directory")]
    Incomplete {
        /// The file that should be there.
        missing: PathBuf,
        /// One that is.
        found: PathBuf,
    },
    /// When a file that is there cannot be used.
    #[error("{0} (or remove the whole directory: a new CA is made)")]
    Tls(TlsError),
    /// When `ca.crt` is a certificate, but not a CA's.
    #[error("{path} is not the certificate of a CA; name an empty directory")]
    NotCa {
        /// The file.
        path: PathBuf,
    },
    /// When the CA's validity begins later than now.
    #[error("{path} is not valid yet; set the clock, or remove the directory: a new CA is made")]
    NotYetValid {
        /// The file.
        path: PathBuf,
    },
    /// When `ca.key` cannot sign in the name of `ca.crt`.
    #[error("{key} is not the key of {certificate}; put it back, or name an empty directory")]
    CaKeyMismatch {
        /// The CA's certificate.
        certificate: PathBuf,
        /// The file that should be its key.
        key: PathBuf,
    },
    /// When the certificate could not be made or signed.
    #[error("cannot make a certificate ({0}); this is a defect, report it")]
    Issue(rcgen::Error),
}

// By hand, because `#[from]` would make a `source()` of it and print it twice.
impl From<TlsError> for SelfSignedError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}

/// Makes sure that `directory` holds a CA and a serving certificate for all of
/// `names` (DNS names or IP addresses) that is good at `now` and for 30 days more.
///
/// What is there is kept if it is that. Otherwise a new serving certificate is
/// made, good for a year, and a new CA, good for ten, only if there is none or
/// the old one is about to end. A missing directory is made with mode 0700;
/// keys get mode 0600. Each file is replaced as a whole or not at all, and
/// processes that start together take turns.
///
/// Blocks on the disk, and up to ten seconds on another process: call it before the
/// server starts.
///
/// # Errors
///
/// A [`BootstrapError`] naming the file or directory at fault and what to do.
pub fn ensure(
    directory: &Path,
    names: &[String],
    now: SystemTime,
) -> Result<CertificatePaths, SelfSignedError> {
    let names = server_names(names)?;
    let now_s = unix_seconds(now)?;
    let directory = CertificateDirectory::open(directory)?;
    let authority = match CaCertificate::read(&directory, now_s)? {
        Some(authority) if authority.is_valid_until(now_s + RENEWAL_DAYS * DAY_S) => authority,
        Some(_ending) => {
            // Without its key this CA is not ours to replace.
            directory.require_file(CA_KEY, CA_CERTIFICATE)?;
            CaCertificate::create(&directory, now_s)?
        }
        None => CaCertificate::create(&directory, now_s)?,
    };
    if !serving_certificate::is_valid(&directory, &authority, &names, now_s)? {
        serving_certificate::create(&directory, &authority, &names, now_s)?;
    }
    Ok(CertificatePaths {
        ca: directory.file(CA_CERTIFICATE),
        certificate: directory.file(CERTIFICATE),
        key: directory.file(KEY),
    })
}

/// The names as a client would check them, in the caller's order.
pub(crate) fn server_names(names: &[String]) -> Result<Vec<ServerName<'static>>, SelfSignedError> {
    if names.is_empty() {
        return Err(SelfSignedError::NoNames);
    }
    names
        .iter()
        .map(|name| {
            // A certificate holds names without the root's dot.
            let relative = name.strip_suffix('.').unwrap_or(name);
            ServerName::try_from(relative.to_owned())
                .map_err(|_| SelfSignedError::InvalidName { name: name.clone() })
        })
        .collect()
}

/// Whole seconds since 1970, with room for a CA's life before X.509's last year.
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

#[cfg(test)]
mod tests;
