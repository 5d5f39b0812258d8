//! A CA bundle in memory, as the rotation hands it to the webhook's self-check.

use rustls::pki_types::CertificateDer;
use std::sync::Arc;

/// A CA bundle in memory; `None` before the first one.
pub type CaBundle = Option<Arc<[CertificateDer<'static>]>>;
