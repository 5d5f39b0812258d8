//! The server's side of TLS, from two PEM files to a configuration of rustls.
//!
//! The crypto provider is aws-lc-rs, named explicitly here: nothing depends on
//! a default installed for the whole process. It was chosen over ring because
//! it has what ring lacks: the post-quantum hybrid key exchange X25519MLKEM768
//! (on without a switch, and offered first by programs built with Go 1.24 or
//! later, as current API servers are), AES in AVX-512, and a build validated for
//! FIPS 140-3 behind a feature.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockkeeper_api::config::MinimumTls;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};

mod client_auth;
mod file_watcher;
mod reload;
mod require_client_cert;
mod server_cert;
mod serving;
mod status;

pub use client_auth::ClientVerification;
pub(crate) use file_watcher::LastFailure;
pub use file_watcher::WatchMode;
pub use require_client_cert::Peer;
pub(crate) use server_cert::CertSlot;
pub use serving::ServerTls;
pub use status::CertificateStatus;

/// Protocols offered by ALPN, the preferred one first.
const ALPN_H2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// What the server accepts from a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The oldest version of TLS that a client may speak.
    pub minimum: MinimumTls,
    /// Offer HTTP/1.1 only, for a proxy in between that cannot do HTTP/2.
    pub http1_only: bool,
}

/// Why a certificate, its key, or the two together cannot be served.
///
/// The texts are complete: a reason is part of its text, and there is no
/// `source()` to print after it. No variant carries the content of a file: a
/// parser's own error may quote the bytes it stopped at, which may be a key's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// When a file is missing, or this process may not read it.
    #[error("cannot read {path}: {reason}; check the path and that this user may read it")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// When a file has no PEM section at all, such as one in DER.
    #[error("{path} is not PEM; convert it with openssl (-inform der -outform pem)")]
    NotPem {
        /// The file.
        path: PathBuf,
    },
    /// When a PEM section is cut short or is not base64.
    #[error("{path} has a damaged PEM section; write the file again from its source")]
    DamagedPem {
        /// The file.
        path: PathBuf,
    },
    /// When a PEM file has sections, but none is a certificate.
    #[error(
        "{path} has no CERTIFICATE section; it must hold a certificate, the one to serve first"
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// When a PEM file has sections, but none is a private key in the clear.
    #[error("{path} has no PRIVATE KEY section; it must hold the key, and not encrypted")]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// When the serving certificate's section is not an X.509 certificate.
    #[error("{path} holds no readable X.509 certificate ({reason}); issue it again")]
    InvalidCertificate {
        /// The file.
        path: PathBuf,
        /// What rustls said.
        reason: rustls::Error,
    },
    /// When a section in the file of the clients' CA is not a CA's certificate.
    #[error("{path} holds a certificate that cannot be a CA's; write the CA's own there")]
    InvalidCa {
        /// The file.
        path: PathBuf,
    },
    /// When the key is of a kind that TLS servers don't use, or damaged.
    #[error("{path} holds no usable key; use ECDSA P-256 or P-384, Ed25519, or RSA of 2048 bits")]
    InvalidKey {
        /// The file.
        path: PathBuf,
    },
    /// When both files are good but don't belong together.
    #[error("{key} is not the key of the first certificate in {certificate}; pass a matching pair")]
    KeyMismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// When rustls refuses the whole, which the choices made here rule out.
    #[error("rustls refuses the configuration ({0}); this is a defect, report it")]
    Configuration(rustls::Error),
}

/// The configuration of a [`Serving`] whose files stay as they are, and which
/// asks no client for a certificate.
///
/// # Errors
///
/// A [`TlsError`] naming the file at fault and what to do about it.
pub fn server_config(
    certificate: &Path,
    key: &Path,
    options: &TlsOptions,
) -> Result<Arc<ServerConfig>, TlsError> {
    Ok(ServerTls::load(certificate, key, options, None)?.config())
}

/// True when the client chose HTTP/2 in the handshake.
pub(crate) fn chose_http2(alpn: Option<&[u8]>) -> bool {
    alpn == Some(ALPN_H2)
}

/// The one crypto provider of this crate.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

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

/// All certificates of a PEM file, in its order; at least one.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read_pem(path)?;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| TlsError::DamagedPem { path: path.into() })?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path: path.into() });
    }
    Ok(chain)
}

/// The first private key of a PEM file.
pub(crate) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read_pem(path)?).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::NoKey { path: path.into() },
        _ => TlsError::DamagedPem { path: path.into() },
    })
}

/// The bytes of a file that has at least one PEM section.
fn read_pem(path: &Path) -> Result<Vec<u8>, TlsError> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let text = std::fs::read(path).map_err(|reason| TlsError::Read {
        path: path.into(),
        reason,
    })?;
    if text.windows(BEGIN.len()).any(|window| window == BEGIN) {
        Ok(text)
    } else {
        Err(TlsError::NotPem { path: path.into() })
    }
}

#[cfg(test)]
mod tests;
