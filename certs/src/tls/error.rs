//! Errors of certificates and keys in files.

use std::io;
use std::path::PathBuf;

/// Why a certificate, its key, or both together cannot be served.
///
/// Each text contains its reason, so there is no `source()` to print after it. No variant has the content
/// of a file: a parser's own error may quote the bytes at its position, which may be a key's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// When a file is missing, or this process may not read it.
    #[error("cannot read {path}: {reason}; check the path and that this user may read it")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
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
    /// When a PEM file has sections, but none is an unencrypted private key.
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
        /// The error of rustls.
        reason: rustls::Error,
    },
    /// When a section in the file of the clients' CA is not a CA's certificate.
    #[error("{path} holds a certificate that cannot be a CA's; write the CA's own there")]
    InvalidCa {
        /// The file.
        path: PathBuf,
    },
    /// When the key has a type that TLS servers do not use, or is damaged.
    #[error("{path} holds no usable key; use ECDSA P-256 or P-384, Ed25519, or RSA of 2048 bits")]
    InvalidKey {
        /// The file.
        path: PathBuf,
    },
    /// When both files are valid but do not match.
    #[error("{key} is not the key of the first certificate in {certificate}; pass a matching pair")]
    KeyMismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// When rustls rejects the configuration, which its construction here rules out.
    #[error("rustls rejects the configuration ({0}); this is a defect, report it")]
    Configuration(rustls::Error),
}
