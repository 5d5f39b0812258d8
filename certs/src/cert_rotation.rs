//! Certificates in a Secret that all replicas share, and CA injection into webhook configurations.
//!
//! Any replica may write, and every write is guarded by the resource version that it was planned from:
//! the first writer wins, and the others load its result. `plan` decides the next step, without a clock
//! or a cluster; `cert_rotator` executes it.

mod annotations;
mod apply_step;
mod ca_injection;
mod cert_rotator;
mod contents;
mod events;
mod injection_targets;
mod observed_secret;
mod plan;
mod secret_store;
mod settings;
mod subject_alt_names;

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod rotation_model;
#[cfg(test)]
mod tests;

pub use annotations::RENEW_ANNOTATION;
pub use cert_rotator::CertRotator;
pub use contents::{SecretContentsError, parse_secret_data};
pub use settings::{CertRotationSettings, StartError};
