//! Where the certificate that is served comes from, and who looks after it.

use super::Arguments;
use crate::Failure;
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

/// A name that every certificate of our own making has, and that the server expects of itself where
/// no other is said.
const DEFAULT_SERVER_NAME: &str = "localhost";

/// The certificate that is served.
pub(super) enum CertificateSource {
    /// Two files that were given, and perhaps their CA and a name.
    Provided {
        files: CertificatePaths,
        ca: Option<PathBuf>,
        name: Option<String>,
    },
    /// A directory where we make them.
    Directory {
        files: CertificatePaths,
        directory: PathBuf,
        names: Vec<String>,
    },
    /// A Secret that all replicas share, at this API server.
    Secret(Box<cert_rotation::CertRotationSettings>, Client),
}

/// Refuses settings that cannot be met, before anything is begun.
pub(super) fn validate(arguments: &Arguments, config: &Config) -> Result<(), Failure> {
    let Some(secret) = &config.webhook.certificates.secret else {
        return Ok(());
    };
    let no_cluster =
        arguments.kubeconfig.is_none() && env::var_os(super::IN_CLUSTER_VARIABLE).is_none();
    if arguments.world.is_some() || no_cluster {
        return Err(Failure::Usage(anyhow!(
            "certificates in Secret {secret} need an API server; give --kubeconfig and no --world, \
             or run in a pod, or take --tls-dir"
        )));
    }
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
    /// As the settings say. `client` is of the API server that the world is asked of.
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

    /// The server's side of TLS.
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

    /// What the greeting says of it, and the CA's file if there is one.
    pub(super) fn description(&self) -> (String, Option<&PathBuf>) {
        match self {
            Self::Provided { files, .. } | Self::Directory { files, .. } => {
                (files.certificate.display().to_string(), Some(&files.ca))
            }
            Self::Secret(settings, _) => (format!("Secret {}", settings.secret()), None),
        }
    }

    /// Starts whoever looks after it. They go on until the runtime ends. How the server looks at
    /// itself comes back.
    pub(super) fn start_renewal(
        self,
        serving: &ServerTls,
        health: &Arc<Health>,
        address: SocketAddr,
        webhook: &WebhookSettings,
    ) -> Result<SelfCheck, Error> {
        let mut name = DEFAULT_SERVER_NAME.try_into()?;
        let trust = match self {
            // Who signed a certificate that was given is known only if that is said too.
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
                let keeper = CertRotator::new(*settings, &client, serving, Arc::clone(health));
                let bundle = keeper.bundle();
                tokio::spawn(keeper.run());
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

/// Where a user's programs keep what they make (XDG Base Directory Specification).
fn state_directory() -> Result<PathBuf, Error> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or_else(|| anyhow!("neither XDG_STATE_HOME nor HOME is set; give --tls-dir"))
}
