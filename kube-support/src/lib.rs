//! Support for clients of the Kubernetes API server: watches that restart after an error, slim
//! objects, errors printed with their causes, health and the port for probes and metrics.
//!
//! The crate handles no rules, quota or certificates.

pub mod error_chain;
pub mod health;
pub mod probe_server;
pub mod slim_object;
pub mod watch_stream;
