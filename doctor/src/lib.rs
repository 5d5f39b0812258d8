//! Checks the webhooks, CRDs, certificates and quota of a cluster against the good practices of Kubernetes.
//!
//! [`Snapshot`] takes the objects of a cluster, or manifests, in any order; [`diagnose()`] returns a [`Finding`] for each
//! breach, and what was not checked. A missing object is a finding only if all objects of its kind were added
//! ([`Snapshot::mark_complete`]).
//!
//! Pure: the current time and the outcomes of TLS handshakes are inputs, and nothing here does I/O.
#![deny(clippy::arithmetic_side_effects)]

mod catalogue;
mod certificate;
mod checks;
mod diagnose;
mod diagnosis;
mod finding;
mod snapshot;
mod webhook;

pub use catalogue::{CHECKS, Check, Severity};
pub use certificate::certificate_end_s;
pub use checks::served::{Handshake, HandshakeError};
pub use diagnose::diagnose;
pub use diagnosis::Diagnosis;
pub use finding::Finding;
pub use snapshot::{Kind, Snapshot};
pub use webhook::{Endpoint, ServiceName};
