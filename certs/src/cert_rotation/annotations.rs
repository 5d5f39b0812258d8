//! Annotations of the Secret.

/// The annotation that requests a new CA, set by an administrator; its value is `ca`.
pub const RENEW_ANNOTATION: &str = "lockkeeper.dev/renew";
pub(super) const RENEW_CA: &str = "ca";
