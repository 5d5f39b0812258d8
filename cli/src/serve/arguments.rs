//! The flags of `lockkeeper serve`.

use crate::logging::LogFormat;
use crate::user_rules::RuleDirs;
use anyhow::{Error, bail};
use clap::{Args, ValueEnum};
use lockkeeper_api::config::{
    Config, InjectionTarget, ListenAddress, MinimumTls, NamespacedName, OptionalListen,
};
use std::path::PathBuf;

/// Flags; those that the configuration file has too go before it.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print the configuration that holds, file and flags taken together, and exit
    #[arg(long)]
    pub(super) print_config: bool,

    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:9443]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,

    /// Address and port to show metrics on, over plain HTTP; `off` opens none [default:
    /// 127.0.0.1:9444]
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<OptionalListen>,

    /// Read other objects from the API server of this kubeconfig; in a pod its service account is
    /// used without this
    #[arg(long, value_name = "FILE", conflicts_with = "world")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Read other objects from the YAML and JSON files of this folder [default: examples/world,
    /// where there is one and no cluster]
    #[arg(long, value_name = "DIR")]
    pub(super) world: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rules: RuleDirs,

    /// Private folder for the certificates that are made when none are given [default:
    /// `lockkeeper/tls` in `$XDG_STATE_HOME`, or in `~/.local/state`]
    #[arg(long, value_name = "DIR", conflicts_with = "tls_certificate")]
    pub(super) tls_dir: Option<PathBuf>,

    /// One more name or IP address for the certificate that is made; may be repeated. With --tls-ca,
    /// the name of the given certificate that the server checks itself by [default: localhost]
    #[arg(long, value_name = "NAME")]
    pub(super) tls_name: Vec<String>,

    /// Secret that all replicas share, for certificates that the server makes, renews and rotates by
    /// itself; give the name of the Service with --tls-name, such as
    /// lockkeeper.lockkeeper-system.svc
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with_all = ["tls_certificate", "tls_dir", "world"])]
    tls_secret: Option<NamespacedName>,

    /// Object that gets the CA bundle of the Secret; may be repeated [default:
    /// validatingwebhookconfigurations/lockkeeper and mutatingwebhookconfigurations/lockkeeper]
    #[arg(long, value_name = "KIND/NAME", conflicts_with_all = ["tls_certificate", "tls_dir"])]
    inject: Vec<InjectionTarget>,

    /// Certificate chain to serve (PEM)
    #[arg(long = "tls-cert", value_name = "FILE", requires = "tls_key")]
    pub(super) tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_key: Option<PathBuf>,

    /// CA that the given certificate is signed by (PEM); the server is ready only while the certificate
    /// fits it. Read again at each check [default: any certificate will do]
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_ca: Option<PathBuf>,

    /// Oldest TLS version to speak [default: 1.3]
    #[arg(long, value_name = "VERSION")]
    tls_min_version: Option<TlsVersion>,

    /// Do not offer HTTP/2
    #[arg(long)]
    http1_only: bool,

    /// CA of the client certificates that reviews must come with (PEM); probes need none. Read again
    /// when it changes
    #[arg(long, value_name = "FILE")]
    client_ca: Option<String>,

    /// Name that a client certificate may have, as a DNS name or as its common name; may be repeated
    /// [default: any of the CA]
    #[arg(long, value_name = "NAME")]
    client_name: Vec<String>,

    /// How log lines on standard error look
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(super) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TlsVersion {
    #[value(name = "1.2")]
    V1_2,
    #[value(name = "1.3")]
    V1_3,
}

impl Arguments {
    /// Puts what the flags say into the configuration.
    pub(super) fn apply(&self, config: &mut Config) {
        let webhook = &mut config.webhook;
        if let Some(listen) = &self.listen {
            webhook.listen.clone_from(listen);
        }
        if let Some(listen) = &self.metrics_listen {
            webhook.metrics_listen.clone_from(listen);
        }
        match self.tls_min_version {
            Some(TlsVersion::V1_2) => webhook.minimum_tls = MinimumTls::V1_2,
            Some(TlsVersion::V1_3) => webhook.minimum_tls = MinimumTls::V1_3,
            None => {}
        }
        webhook.http1_only |= self.http1_only;
        if let Some(ca) = &self.client_ca {
            webhook.client_ca = Some(ca.clone());
        }
        let certificates = &mut webhook.certificates;
        if self.tls_certificate.is_some() || self.tls_dir.is_some() {
            certificates.secret = None;
        }
        if let Some(secret) = &self.tls_secret {
            certificates.secret = Some(secret.clone());
        }
        if !self.inject.is_empty() {
            certificates.inject.clone_from(&self.inject);
        }
        if !self.client_name.is_empty() {
            webhook.client_names.clone_from(&self.client_name);
        }
    }

    /// Checks what the flags say together.
    pub(super) fn validate(&self) -> Result<(), Error> {
        if self.tls_certificate.is_some() && self.tls_ca.is_none() && !self.tls_name.is_empty() {
            bail!(
                "--tls-name with --tls-cert is the name to check that certificate by, and nothing says \
                 who signed it; give --tls-ca, or leave --tls-name out"
            );
        }
        Ok(())
    }
}
