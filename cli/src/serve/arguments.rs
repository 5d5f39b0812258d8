//! The flags of `lockkeeper serve`.

use crate::logging::LogFormat;
use crate::user_rules::RuleDirs;
use anyhow::{Error, bail};
use clap::{Args, ValueEnum};
use lockkeeper_api::config::{
    Config, InjectionTarget, ListenAddress, MinimumTls, NamespacedName, OptionalListen,
};
use std::path::PathBuf;

/// Flags. They override the configuration file.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Configuration file (YAML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print the effective configuration (file and flags) and exit
    #[arg(long)]
    pub(super) print_config: bool,

    /// Address to listen on; port 0 selects a free one [default: 127.0.0.1:9443]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,

    /// Address of the metrics over plain HTTP, or `off` [default: 127.0.0.1:9444]
    #[arg(long, value_name = "ADDRESS")]
    metrics_listen: Option<OptionalListen>,

    /// Address of a port with probes only, or `off` [default: off]
    #[arg(long, value_name = "ADDRESS")]
    probe_listen: Option<OptionalListen>,

    /// Serve /noop, to measure the cost of the transport
    #[arg(long)]
    pub(super) noop: bool,

    /// Cluster to read other objects from [default: in a pod, its service account]
    #[arg(long, value_name = "FILE", conflicts_with = "world")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Folder with YAML and JSON files to read other objects from, without a cluster [default: examples/world, if it
    /// exists]
    #[arg(long, value_name = "DIR")]
    pub(super) world: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rules: RuleDirs,

    /// Folder for self-signed certificates [default: `lockkeeper/tls` in `$XDG_STATE_HOME` or `~/.local/state`]
    #[arg(long, value_name = "DIR", conflicts_with = "tls_certificate")]
    pub(super) tls_dir: Option<PathBuf>,

    /// DNS name or IP address of the self-signed certificate; repeatable. With --tls-ca, the name that the self-check
    /// expects in the given certificate [default: localhost]
    #[arg(long, value_name = "NAME")]
    pub(super) tls_name: Vec<String>,

    /// Secret in which the replicas share self-signed certificates and rotate them; set --tls-name to the Service, such
    /// as lockkeeper.lockkeeper-system.svc
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with_all = ["tls_certificate", "tls_dir", "world"])]
    tls_secret: Option<NamespacedName>,

    /// Object to inject the CA bundle into; repeatable [default:
    /// validatingwebhookconfigurations/lockkeeper and mutatingwebhookconfigurations/lockkeeper]
    #[arg(long, value_name = "KIND/NAME", conflicts_with_all = ["tls_certificate", "tls_dir"])]
    inject: Vec<InjectionTarget>,

    /// Certificate chain to serve (PEM)
    #[arg(long = "tls-cert", value_name = "FILE", requires = "tls_key")]
    pub(super) tls_certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_key: Option<PathBuf>,

    /// CA of the given certificate (PEM), reloaded at each self-check; not ready while the certificate does not match
    /// [default: any CA]
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(super) tls_ca: Option<PathBuf>,

    /// Minimum TLS version [default: 1.3]
    #[arg(long, value_name = "VERSION")]
    tls_min_version: Option<TlsVersion>,

    /// Disable HTTP/2
    #[arg(long)]
    http1_only: bool,

    /// CA of the required client certificates (PEM), reloaded on change; probes need no certificate
    #[arg(long, value_name = "FILE")]
    client_ca: Option<String>,

    /// Accepted DNS name or common name of client certificates; repeatable [default: any]
    #[arg(long, value_name = "NAME")]
    client_name: Vec<String>,

    /// Audience of the tokens with which API servers authenticate (KEP-6060): the address of the webhook without the path; reviews
    /// without such a token are rejected [default: no token is required]
    #[arg(long, value_name = "URL")]
    token_audience: Option<String>,

    /// Format of log lines on stderr
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
    /// Overrides the configuration with the flags.
    pub(super) fn apply(&self, config: &mut Config) {
        let webhook = &mut config.webhook;
        if let Some(listen) = &self.listen {
            webhook.listen.clone_from(listen);
        }
        if let Some(listen) = &self.metrics_listen {
            webhook.metrics_listen.clone_from(listen);
        }
        if let Some(listen) = &self.probe_listen {
            webhook.probe_listen.clone_from(listen);
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
        if let Some(audience) = &self.token_audience {
            webhook.token_audience = Some(audience.clone());
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

    /// Checks combinations of flags that clap cannot express.
    pub(super) fn validate(&self) -> Result<(), Error> {
        if self.tls_certificate.is_some() && self.tls_ca.is_none() && !self.tls_name.is_empty() {
            bail!(
                "--tls-name with --tls-cert needs --tls-ca to verify the certificate; set --tls-ca, or omit --tls-name"
            );
        }
        Ok(())
    }
}
