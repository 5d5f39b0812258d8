//! Support for clients of the Kubernetes API server: clients that notice dead connections, watches that
//! restart after an error, objects decoded one at a time, slim objects, errors printed with their causes, health and the port for probes and metrics.
//!
//! The crate handles no rules, quota or certificates.

pub mod api_client;
pub mod error_chain;
pub mod health;
pub mod list_item;
pub mod probe_server;
mod resource_of_kind;
pub mod slim_object;
pub mod watch_stream;
