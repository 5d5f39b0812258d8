//! Certificates and keys in PEM files.

use super::error::TlsError;
use super::provider::provider;
use rustls::InconsistentKeys;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::Path;

/// Reads a chain and a key, and checks that they belong together.
pub(crate) fn certified_key(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let chain = read_certificates(certificate)?;
    let signer = provider()
        .key_provider
        .load_private_key(read_key(key)?)
        .map_err(|_| TlsError::InvalidKey { path: key.into() })?;
    let certified = CertifiedKey::new(chain, signer);
    match certified.keys_match() {
        Ok(()) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(TlsError::KeyMismatch {
                certificate: certificate.into(),
                key: key.into(),
            })
        }
        Err(reason) => Err(TlsError::InvalidCertificate {
            path: certificate.into(),
            reason,
        }),
    }
}

/// Reads all certificates of a PEM file, in its order; at least one.
///
/// # Errors
///
/// A [`TlsError`] with the path when the file cannot be read or has no certificate.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read_pem(path)?;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| TlsError::DamagedPem { path: path.into() })?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: path.into() });
    }
    Ok(chain)
}

/// Reads the first private key of a PEM file.
pub(crate) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read_pem(path)?).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::NoKey { path: path.into() },
        _ => TlsError::DamagedPem { path: path.into() },
    })
}

/// Reads the bytes of a file that has at least one PEM section.
fn read_pem(path: &Path) -> Result<Vec<u8>, TlsError> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let text = std::fs::read(path).map_err(|reason| TlsError::Read {
        path: path.into(),
        reason,
    })?;
    // A DER file has no section, and needs another remedy than a PEM file of the wrong kind.
    if text.windows(BEGIN.len()).any(|window| window == BEGIN) {
        Ok(text)
    } else {
        Err(TlsError::NotPem { path: path.into() })
    }
}
