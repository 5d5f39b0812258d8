//! Configuration of the rotation, and the certificate that is served before the Secret is read.

use super::apply_step::{CertIssuer, Lifetimes, StepError};
use super::plan::RotationStep;
use crate::self_signed::{self, SelfSignedError};
use crate::tls::{ClientVerification, ServerTls, TlsError, TlsOptions};
use lockkeeper_api::config::{CertificateSettings, InjectionTarget, NamespacedName};
use rustls::pki_types::ServerName;
use std::time::{Duration, SystemTime};

/// Validity of the certificate that is served before the Secret has been read, in days.
const EPHEMERAL_DAYS: u64 = 1;

/// The Secret, the targets of CA injection, and the certificates to issue.
#[derive(Clone, Debug)]
pub struct CertRotationSettings {
    pub(super) secret: NamespacedName,
    pub(super) injection_targets: Vec<InjectionTarget>,
    pub(super) overlap: Duration,
    pub(super) name: ServerName<'static>,
    pub(super) issuer: CertIssuer,
}

/// Why the server cannot start to serve from a Secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// When no certificate can be issued for these names.
    #[error(transparent)]
    Certificate(#[from] SelfSignedError),
    /// When the CA of the clients cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// When the issued certificate cannot be parsed.
    #[error("cannot make a certificate ({0}); this is a defect, report it")]
    Internal(String),
}

impl CertRotationSettings {
    /// Creates the settings for a serving certificate with these names; `None` if no Secret is
    /// configured.
    ///
    /// # Errors
    ///
    /// A [`SelfSignedError`] when there is no name, or one that no certificate can have.
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

    /// Returns the Secret.
    #[must_use]
    pub fn secret(&self) -> &NamespacedName {
        &self.secret
    }

    /// Returns the first name of the serving certificate.
    #[must_use]
    pub fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// Returns a TLS server for the time before the Secret has been read. No client trusts its
    /// certificate, but probes can read `/readyz` for the reason.
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
