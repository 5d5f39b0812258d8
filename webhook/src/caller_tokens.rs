//! Tokens with which API servers show that they may send admission reviews (KEP-6060).
//!
//! An API server requests the token from the cluster's `TokenRequest` API. It is signed with the cluster's key for service accounts,
//! is for the address and path of one webhook, is bound to the webhook's configuration, and attests the API group of the reviews.
//! Every account may request tokens for any audience, so the audience alone shows nothing: the attestation does, which
//! needs the right `attest`.
//!
//! The keys are read from the API server and kept up to date. `/convert` needs no token: API servers have none for conversions.

mod claims;
mod key_discovery;
mod key_set;
mod token_error;
mod verified_tokens;
mod verifier;

pub(crate) use claims::Caller;
pub use key_discovery::KeyDiscovery;
pub use key_set::{KeySet, KeySetError};
pub(crate) use token_error::TokenError;
pub use verifier::CallerTokens;
