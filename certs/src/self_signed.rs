//! A self-signed CA and a serving certificate in a private directory, for a server that runs
//! without a cluster and without cert-manager.
//!
//! [`ensure()`] may be called at every start. It keeps the CA until shortly before it expires, so that
//! `curl --cacert ca.crt` continues to work, and renews only the serving certificate. It never
//! overwrites a file that it may not have written: a directory without `ca.key`, or with an
//! unreadable file, is an error.
//!
//! Unix only: the permissions of the directory protect the keys.

mod ca;
mod directory;
mod ensure;
mod error;
pub(crate) mod issue;
mod names;
mod renewal;
mod serving_certificate;
#[cfg(test)]
mod tests;

pub use ensure::{CertificatePaths, ensure};
pub use error::SelfSignedError;
pub(crate) use names::{DAY_S, RENEWAL_DAYS, server_names, unix_seconds};
pub use renewal::{RENEWAL_CHECK_SECONDS, RenewalTask};
