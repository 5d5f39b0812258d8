//! Serving certificates of the webhook: a self-signed CA in a directory, certificates that are
//! rotated in a Secret which all replicas share, and TLS that reloads both without dropping a
//! connection. Clients are authenticated here as well.
//!
//! The crate depends neither on HTTP routes nor on admission.

pub mod ca_bundle;
pub mod cert_rotation;
pub mod self_signed;
pub mod tls;
