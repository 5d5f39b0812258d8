//! The crypto provider and the protocols offered by ALPN.

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::Arc;

/// Offered by ALPN before [`ALPN_HTTP1`].
pub(super) const ALPN_H2: &[u8] = b"h2";
pub(super) const ALPN_HTTP1: &[u8] = b"http/1.1";

/// Returns true if the client chose HTTP/2 in the handshake.
#[must_use]
pub fn chose_http2(alpn: Option<&[u8]>) -> bool {
    alpn == Some(ALPN_H2)
}

/// Returns the crypto provider of lockkeeper: aws-lc-rs.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
