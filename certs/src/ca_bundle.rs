//! A CA bundle in memory, which the certificate rotation passes to the webhook's self-check.

use rustls::pki_types::CertificateDer;
use std::sync::Arc;

/// A CA bundle in memory; `None` before the first one.
pub type CaBundle = Option<Arc<[CertificateDer<'static>]>>;
