//! What every component that talks to a Kubernetes API server needs: watches that restart after an
//! error, slim objects, errors printed with their causes, health and the port for probes and metrics.
//!
//! No rule, quota or certificate is handled here.

pub mod error_chain;
pub mod health;
pub mod probe_server;
pub mod slim_object;
pub mod watch_stream;
