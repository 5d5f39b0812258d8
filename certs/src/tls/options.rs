//! Settings of the TLS listener.

use lockkeeper_api::config::MinimumTls;

/// TLS versions and protocols that the server accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The oldest TLS version that a client may use.
    pub minimum: MinimumTls,
    /// Offer HTTP/1.1 only, for a proxy in between that cannot do HTTP/2.
    pub http1_only: bool,
}
