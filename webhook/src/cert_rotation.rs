//! Certificates in a Secret that all replicas share, and the CA bundle of whatever calls them.
//!
//! Any replica may write, and every write is guarded by the version that it was planned from: the
//! first writer wins, and the others take over what is there. What to write is decided in `plan`,
//! which knows no clock and no cluster; `keeper` sees to it that it happens.

use std::time::{Duration, SystemTime};

use lockkeeper_api::config::{CertificateSettings, InjectionTarget, NamespacedName};
use rustls::pki_types::ServerName;

use crate::self_signed::{self, SelfSignedError};
use crate::tls::{ClientVerification, ServerTls, TlsError, TlsOptions};

mod apply_step;
mod ca_injection;
mod cert_rotator;
mod contents;
mod events;
mod injection_targets;
mod observed_secret;
mod plan;
mod secret_store;
mod subject_alt_names;

pub use cert_rotator::CertRotator;

use apply_step::{CertIssuer, Lifetimes, StepError};
use plan::RotationStep;

/// The annotation of the Secret by which somebody asks for a new CA, and its value.
pub const RENEW_ANNOTATION: &str = "lockkeeper.dev/renew";
pub(crate) const RENEW_CA: &str = "ca";

/// For how long the certificate is good that is served before the Secret has been read, in days.
const EPHEMERAL_DAYS: u64 = 1;

/// What is to be kept, and where.
#[derive(Clone, Debug)]
pub struct CertRotationSettings {
    secret: NamespacedName,
    injection_targets: Vec<InjectionTarget>,
    overlap: Duration,
    name: ServerName<'static>,
    issuer: CertIssuer,
}

/// Why the server cannot begin to serve from a Secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// When no certificate can be made for these names.
    #[error(transparent)]
    Certificate(#[from] SelfSignedError),
    /// When the CA of the clients cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// When what was made cannot be read.
    #[error("cannot make a certificate ({0}); this is a defect, report it")]
    Internal(String),
}

impl CertRotationSettings {
    /// As configured, for a serving certificate with these names; `None` if no Secret is configured.
    ///
    /// # Errors
    ///
    /// A [`BootstrapError`] when there is no name, or one that no certificate can have.
    pub fn new(
        settings: &CertificateSettings,
        names: &[String],
    ) -> Result<Option<Self>, SelfSignedError> {
        let Some(secret) = settings.secret.clone() else {
            return Ok(None);
        };
        let names = self_signed::server_names(names)?;
        let name = names.first().cloned().ok_or(SelfSignedError::NoNames)?;
        Ok(Some(Self {
            secret,
            injection_targets: settings.inject.clone(),
            overlap: Duration::from_secs(settings.overlap_seconds),
            name,
            issuer: CertIssuer {
                names,
                lifetimes: Lifetimes {
                    ca_days: settings.ca_days,
                    serving_days: settings.serving_days,
                },
            },
        }))
    }

    /// The Secret.
    #[must_use]
    pub fn secret(&self) -> &NamespacedName {
        &self.secret
    }

    /// A name that the serving certificate will have: the first one.
    #[must_use]
    pub fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// A server's side of TLS that answers before the Secret has been read, with a certificate that
    /// nobody trusts: probes can ask what is wrong.
    ///
    /// # Errors
    ///
    /// A [`StartError`] when the names or the clock allow no certificate, or when the CA of the
    /// clients cannot be used.
    pub fn serving_with_ephemeral_certificate(
        &self,
        options: &TlsOptions,
        client: Option<&ClientVerification>,
    ) -> Result<ServerTls, StartError> {
        let ephemeral = CertIssuer {
            lifetimes: Lifetimes {
                ca_days: EPHEMERAL_DAYS,
                serving_days: EPHEMERAL_DAYS,
            },
            ..self.issuer.clone()
        };
        let now_s = self_signed::unix_seconds(SystemTime::now())?;
        let made = ephemeral.apply(RotationStep::Create, None, None, now_s);
        let made = made.map_err(|error| match error {
            StepError::Issue(error) => StartError::Certificate(error),
            error => StartError::Internal(error.to_string()),
        })?;
        let pair = made.certified_key().as_ref().clone();
        let ends_s = made.validity().ends_s;
        Ok(ServerTls::from_memory(pair, ends_s, *options, client)?)
    }
}

#[cfg(test)]
mod rotation_model;
#[cfg(test)]
mod tests;
