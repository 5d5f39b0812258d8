//! The self-check of the webhook: a TLS connection to its own listener, as the API server would open it.

mod handshake;
mod self_check;
mod trust;

pub use handshake::SelfCheckError;
pub use self_check::SelfCheck;
pub use trust::SelfCheckTrust;
