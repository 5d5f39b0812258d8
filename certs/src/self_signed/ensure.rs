//! Creates and renews the files of the certificate directory.

use super::ca::CaCertificate;
use super::directory::{CA_CERTIFICATE, CA_KEY, CERTIFICATE, CertificateDirectory, KEY};
use super::error::SelfSignedError;
use super::names::{DAY_S, RENEWAL_DAYS, server_names, unix_seconds};
use super::serving_certificate;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files of the directory for the server and its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificatePaths {
    /// `ca.crt`: the CA for clients (`curl --cacert`, a `caBundle`).
    pub ca: PathBuf,
    /// `tls.crt`: the serving certificate.
    pub certificate: PathBuf,
    /// `tls.key`: the serving certificate's key.
    pub key: PathBuf,
}

/// Ensures that `directory` has a CA and a serving certificate for all of `names` (DNS names or IP
/// addresses) that is valid at `now` and for 30 more days.
///
/// Valid files are kept. Otherwise it issues a serving certificate for one year, and a new CA for ten
/// years only if there is none or the old one is about to expire. A missing directory is created with
/// mode 0700; keys get mode 0600. Each file is replaced atomically; processes that start together are
/// serialized by a file lock.
///
/// Blocks on the disk, and up to ten seconds on another process: call it before the server starts.
///
/// # Errors
///
/// A [`SelfSignedError`] that names the file or directory and the remedy.
pub fn ensure(
    directory: &Path,
    names: &[String],
    now: SystemTime,
) -> Result<CertificatePaths, SelfSignedError> {
    let names = server_names(names)?;
    let now_s = unix_seconds(now)?;
    let directory = CertificateDirectory::open(directory)?;
    let ca = match CaCertificate::read(&directory, now_s)? {
        Some(ca) if ca.is_valid_until(now_s + RENEWAL_DAYS * DAY_S) => ca,
        Some(_ending) => {
            // Without its key, this CA was not created here and must not be replaced.
            directory.require_file(CA_KEY, CA_CERTIFICATE)?;
            CaCertificate::create(&directory, now_s)?
        }
        None => CaCertificate::create(&directory, now_s)?,
    };
    if !serving_certificate::is_valid(&directory, &ca, &names, now_s)? {
        serving_certificate::create(&directory, &ca, &names, now_s)?;
    }
    Ok(CertificatePaths {
        ca: directory.file(CA_CERTIFICATE),
        certificate: directory.file(CERTIFICATE),
        key: directory.file(KEY),
    })
}
