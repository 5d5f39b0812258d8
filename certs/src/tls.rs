//! The TLS server: certificates and keys from PEM files or a Secret, reloaded without dropping connections.
//!
//! The crypto provider is aws-lc-rs, named explicitly here: no code depends on the default provider
//! of the process. It has features that ring lacks: the post-quantum hybrid key exchange
//! X25519MLKEM768 (enabled by default, and offered first by programs built with Go 1.24 or later,
//! such as current API servers), AES in AVX-512, and a build validated for FIPS 140-3 behind a
//! feature (`docs/adr/0001-crypto-provider.md`).

mod client_auth;
mod error;
mod file_watcher;
mod options;
mod pem_files;
mod provider;
mod rejection_log;
mod reload;
mod require_client_cert;
mod server_cert;
mod serving;
mod status;
#[cfg(test)]
mod tests;

pub use client_auth::ClientVerification;
pub use error::TlsError;
pub(crate) use file_watcher::LastFailure;
pub use file_watcher::WatchMode;
pub use options::TlsOptions;
pub use pem_files::read_certificates;
pub(crate) use pem_files::{certified_key, read_key};
pub use provider::{chose_http2, provider};
pub use require_client_cert::Peer;
pub(crate) use server_cert::CertSlot;
pub use serving::{ServerTls, server_config};
pub use status::CertificateStatus;
