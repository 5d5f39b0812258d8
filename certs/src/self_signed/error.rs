//! Errors of the certificate directory.

use crate::tls::TlsError;
use std::path::PathBuf;

/// Why the directory has no usable certificate, and the remedy.
///
/// Each text contains its reason, so there is no `source()` to print after it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfSignedError {
    /// When the list of names is empty.
    #[error("no name to put into the serving certificate; give at least one, such as localhost")]
    NoNames,
    /// When a name is neither a DNS name nor an IP address.
    #[error("{name:?} is neither a DNS name nor an IP address; wildcards aren't made")]
    InvalidName {
        /// The invalid name.
        name: String,
    },
    /// When no certificate can be valid at the time of the clock.
    #[error("the clock is before 1970 or after 9900; set it and start again")]
    ClockOutOfRange,
    /// When other users can read or change the directory.
    #[error("{directory} is open to other users (mode {mode:04o}); run: chmod 700 {directory}")]
    InsecurePermissions {
        /// The directory.
        directory: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// When another process holds the lock of the directory for too long.
    #[error("{directory} is in use by another process starting up; try again when it is done")]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// When the operating system cannot create, lock or write a file.
    #[error(
        "cannot {action} {path}: {reason}; check its owner and free space, or name another directory"
    )]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        reason: std::io::Error,
    },
    /// When one of the files is missing, so that the others may be from another program.
    #[error("{missing} is missing beside {found}; put it back, or name an empty directory")]
    Incomplete {
        /// The missing file.
        missing: PathBuf,
        /// A file that exists.
        found: PathBuf,
    },
    /// When a file cannot be used.
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
    /// When `ca.key` is not the key of `ca.crt`.
    #[error("{key} is not the key of {certificate}; put it back, or name an empty directory")]
    CaKeyMismatch {
        /// The CA's certificate.
        certificate: PathBuf,
        /// The file that should be its key.
        key: PathBuf,
    },
    /// When the certificate cannot be issued or signed.
    #[error("cannot make a certificate ({0}); this is a defect, report it")]
    Issue(rcgen::Error),
}

// Not `#[from]`: that would add a `source()`, and the text would be printed twice.
impl From<TlsError> for SelfSignedError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}
