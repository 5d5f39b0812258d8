//! The source of the serving certificate, and the task that renews it.

use super::Arguments;
use crate::{Failure, kubeconfig};
use anyhow::{Context, Error, anyhow};
use kube::Client;
use lockkeeper_api::config::{Config, WebhookSettings};
use lockkeeper_certs::cert_rotation::{self, CertRotator};
use lockkeeper_certs::self_signed::{self, CertificatePaths, RenewalTask};
use lockkeeper_certs::tls::{ClientVerification, ServerTls, TlsOptions};
use lockkeeper_kube_support::health::Health;
use lockkeeper_webhook::readiness::{SelfCheck, SelfCheckTrust};
use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// A name of every certificate that lockkeeper issues. The self-check expects it unless another name is set.
const DEFAULT_SERVER_NAME: &str = "localhost";

/// The source of the serving certificate.
pub(super) enum CertificateSource {
    /// The files of `--tls-cert` and `--tls-key`, with the CA and the name if they are set.
    Provided {
        files: CertificatePaths,
        ca: Option<PathBuf>,
        name: Option<String>,
    },
    /// Self-signed files in a directory.
    Directory {
        files: CertificatePaths,
        directory: PathBuf,
        names: Vec<String>,
    },
    /// A Secret that all replicas share, with the client of its API server.
    Secret(Box<cert_rotation::CertRotationSettings>, Client),
}

/// Rejects settings that cannot be satisfied, before the server starts.
pub(super) fn validate(arguments: &Arguments, config: &Config) -> Result<(), Failure> {
    let Some(secret) = &config.webhook.certificates.secret else {
        return Ok(());
    };
    let no_cluster = arguments.kubeconfig.is_none()
        && !kubeconfig::is_in_environment()
        && env::var_os(super::IN_CLUSTER_VARIABLE).is_none();
    if arguments.world.is_some() || no_cluster {
        return Err(Failure::Usage(anyhow!(
            "certificates in Secret {secret} need an API server; set --kubeconfig without --world, \
             run in a pod, or set --tls-dir"
        )));
    }
    // The result is dropped: only its errors count here, before the server starts.
    secret_settings(arguments, config).map_err(Failure::Usage)?;
    Ok(())
}

fn secret_settings(
    arguments: &Arguments,
    config: &Config,
) -> Result<Option<cert_rotation::CertRotationSettings>, Error> {
    let mut names = arguments.tls_name.clone();
    names.push(DEFAULT_SERVER_NAME.to_owned());
    Ok(cert_rotation::CertRotationSettings::new(
        &config.webhook.certificates,
        &names,
    )?)
}

impl CertificateSource {
    /// Selects the source by the flags and the configuration. `client` is that of the objects to look up.
    pub(super) fn from_arguments(
        arguments: &Arguments,
        config: &Config,
        client: Option<&Client>,
    ) -> Result<Self, Error> {
        if let Some(settings) = secret_settings(arguments, config)? {
            let client = client.context("certificates in a Secret need an API server")?;
            return Ok(Self::Secret(Box::new(settings), client.clone()));
        }
        if let (Some(certificate), Some(key)) = (&arguments.tls_certificate, &arguments.tls_key) {
            let files = CertificatePaths {
                ca: arguments.tls_ca.as_ref().unwrap_or(certificate).clone(),
                certificate: certificate.clone(),
                key: key.clone(),
            };
            return Ok(Self::Provided {
                files,
                ca: arguments.tls_ca.clone(),
                name: arguments.tls_name.first().cloned(),
            });
        }
        let directory = match &arguments.tls_dir {
            Some(directory) => directory.clone(),
            None => state_directory()?.join("lockkeeper/tls"),
        };
        let mut names = [DEFAULT_SERVER_NAME, "127.0.0.1", "::1"]
            .map(str::to_owned)
            .to_vec();
        names.extend(arguments.tls_name.iter().cloned());
        let files = self_signed::ensure(&directory, &names, SystemTime::now())?;
        Ok(Self::Directory {
            files,
            directory,
            names,
        })
    }

    /// The TLS server.
    pub(super) fn serving(
        &self,
        options: TlsOptions,
        clients: Option<&ClientVerification>,
    ) -> Result<ServerTls, Error> {
        match self {
            Self::Provided { files, .. } | Self::Directory { files, .. } => {
                let (certificate, key) = (&files.certificate, &files.key);
                Ok(ServerTls::load(certificate, key, &options, clients)?)
            }
            Self::Secret(settings, _) => {
                Ok(settings.serving_with_ephemeral_certificate(&options, clients)?)
            }
        }
    }

    /// The description for the startup message, and the file of the CA if there is one.
    pub(super) fn description(&self) -> (String, Option<&PathBuf>) {
        match self {
            Self::Provided { files, .. } | Self::Directory { files, .. } => {
                (files.certificate.display().to_string(), Some(&files.ca))
            }
            Self::Secret(settings, _) => (format!("Secret {}", settings.secret()), None),
        }
    }

    /// Starts the task that renews the certificate, until the runtime ends. Returns the self-check.
    pub(super) fn start_renewal(
        self,
        serving: &ServerTls,
        health: &Arc<Health>,
        address: SocketAddr,
        webhook: &WebhookSettings,
    ) -> Result<SelfCheck, Error> {
        let mut name = DEFAULT_SERVER_NAME.try_into()?;
        let trust = match self {
            // Without --tls-ca, the CA of a given certificate is unknown.
            Self::Provided { ca: None, .. } => SelfCheckTrust::Any,
            Self::Provided {
                ca: Some(ca),
                name: given,
                ..
            } => {
                if let Some(given) = given {
                    let cannot =
                        || format!("--tls-name {given:?} is neither a DNS name nor an IP address");
                    name = given.clone().try_into().with_context(cannot)?;
                }
                SelfCheckTrust::Ca(ca)
            }
            Self::Directory {
                files,
                directory,
                names,
            } => {
                let renewal = RenewalTask {
                    directory,
                    names,
                    status: serving.status(),
                };
                tokio::spawn(renewal.run());
                SelfCheckTrust::Ca(files.ca)
            }
            Self::Secret(settings, client) => {
                name = settings.name();
                let rotator = CertRotator::new(*settings, &client, serving, Arc::clone(health));
                let bundle = rotator.bundle();
                tokio::spawn(rotator.run());
                SelfCheckTrust::Bundle(bundle)
            }
        };
        Ok(SelfCheck {
            address,
            name,
            trust,
            interval: webhook.self_check_seconds.seconds(),
            timeout: webhook.self_check_timeout_seconds.seconds(),
        })
    }
}

/// The user's state directory (XDG Base Directory Specification).
fn state_directory() -> Result<PathBuf, Error> {
    // The XDG specification declares relative paths invalid.
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or_else(|| anyhow!("neither XDG_STATE_HOME nor HOME is set; set --tls-dir"))
}
