//! The command line.

use crate::definitions;
use crate::diff;
use crate::pages::{self, Folders};
use crate::webhooks::{Authorities, Endpoint, configurations};
use crate::yaml::{self, YamlError};
use clap::{ArgGroup, Args, Subcommand};
use lockkeeper_api::config::{Config, ForeignKinds};
use lockkeeper_policies::registry::{self, Registration, registrations};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user::Rules;
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is to be emitted.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Emit the CRDs of lockkeeper's kinds
    Definitions(Definitions),
    /// Emit the webhook configurations that send objects to `lockkeeper serve`
    Webhooks(Webhooks),
    /// Say what changes between two states of CRDs, and whom it hurts
    Diff(diff::cli::Diff),
}

/// Emitting the definitions.
#[derive(Debug, Default, Args)]
pub struct Definitions {
    #[command(flatten)]
    output: Output,
}

/// Emitting the webhook configurations.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("endpoint").required(true))]
pub struct Webhooks {
    /// The Service in front of the webhook
    #[arg(long, value_name = "NAMESPACE/NAME", group = "endpoint", value_parser = service)]
    service: Option<(String, String)>,

    /// The port of the Service; 443 by default
    #[arg(long, value_name = "N", conflicts_with = "url", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// The URL of the webhook, for one outside the cluster; /validate and /mutate are appended
    #[arg(long, group = "endpoint", value_parser = url)]
    url: Option<String>,

    /// A PEM file with the certificates that the webhook's own may be signed by
    ///
    /// Without it the API server trusts the authorities of its own machine, unless `lockkeeper serve
    /// --tls-secret` or cert-manager fills in the bundle.
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,

    /// The projects whose kinds are sent as well: kueue, koordinator
    ///
    /// Of each kind is sent what some rule is on for.
    #[arg(long, value_name = "PROJECT", value_delimiter = ',')]
    foreign: Vec<ForeignKinds>,

    /// The configuration file of `lockkeeper serve`
    ///
    /// Its webhook.foreignKinds counts besides --foreign, and its rules say what is sent of these kinds, and which of
    /// --rules are on: print the configurations anew when any of them changes.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    rules: Folders,

    /// The Certificate of cert-manager whose CA bundle is to be filled in by it
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = certificate, conflicts_with = "ca_bundle")]
    cert_manager: Option<String>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Args)]
struct Output {
    /// Write one file for each object into this directory instead of printing them all
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

/// Why nothing, or not everything, was emitted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory does not exist and cannot be made.
    #[error("cannot make the directory {path}; name one that you may write to with --output-dir")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}; name a directory that you may write to with --output-dir")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file with the CA's certificates cannot be read.
    #[error("cannot read the CA bundle {path}; name a readable PEM file with --ca-bundle")]
    ReadBundle {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file holds no certificate.
    #[error(
        "the CA bundle {path} holds no certificate; give a PEM file with \"{CERTIFICATE}\" in it"
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file holds a private key. Everybody may read a webhook configuration.
    #[error("the CA bundle {path} holds a private key; give a PEM file with certificates alone")]
    PrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// The configuration file cannot be read.
    #[error("cannot read the configuration {path}; name a readable file with --config")]
    ReadConfig {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The configuration file says what cannot be.
    #[error("the configuration {path} is wrong: {reason}")]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The rules of users cannot be read.
    #[error(transparent)]
    Rules(#[from] pages::Error),
    /// Definitions cannot be compared.
    #[error(transparent)]
    Diff(#[from] diff::cli::Error),
    /// An object has no YAML form. A test emits all of them, so this does not happen.
    #[error("cannot write {name} as YAML; this is a defect, please report it")]
    Yaml {
        /// The file that the object would be in.
        name: String,
        /// What the serializer says.
        source: YamlError,
    },
    /// The output cannot be written to.
    #[error("cannot write the output; write to files with --output-dir instead")]
    Output(#[source] io::Error),
}

/// How a certificate begins in PEM.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// How the first line of a private key ends in PEM, whatever its kind.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// The port of a Service if none is given, as in Kubernetes.
const PORT_DEFAULT: u16 = 443;

/// One object as YAML, and the name of the file for it.
struct Document {
    file: String,
    yaml: String,
}

impl Default for Command {
    fn default() -> Self {
        Self::Definitions(Definitions::default())
    }
}

/// How a command ended that did what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is nothing to be said: exit code 0.
    Done,
    /// Something was found: exit code 1.
    Findings,
}

impl Error {
    /// The exit code: 2 for what cannot be compared, since 1 says that something was found there.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Diff(_) => 2,
            _ => 1,
        }
    }
}

/// Does what the command asks for, as [`run`] does, and says how it ended.
///
/// # Errors
///
/// As those of [`run`].
pub fn outcome(command: Command, out: &mut dyn Write) -> Result<Outcome, Error> {
    let Command::Diff(arguments) = command else {
        return run(command, out).map(|()| Outcome::Done);
    };
    Ok(match diff::cli::run(&arguments, out)? {
        diff::Class::Breaking => Outcome::Findings,
        _ => Outcome::Done,
    })
}

/// Emits what the command asks for: to files if it names a directory, to `out` otherwise.
///
/// A reader that stops reading, as `head` does, is no error.
///
/// # Errors
///
/// When something cannot be read or written; each error says what, and what to do.
pub fn run(command: Command, out: &mut dyn Write) -> Result<(), Error> {
    let (documents, output) = match command {
        Command::Definitions(arguments) => (definition_documents()?, arguments.output),
        Command::Webhooks(arguments) => (webhook_documents(&arguments)?, arguments.output),
        Command::Diff(arguments) => return Ok(diff::cli::run(&arguments, out).map(drop)?),
    };
    match output.output_dir {
        Some(directory) => write_files(&documents, &directory),
        None => print(&documents, out),
    }
}

fn definition_documents() -> Result<Vec<Document>, Error> {
    let each = definitions().into_iter().map(|definition| {
        let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
        document(format!("{group}_{plural}.yaml"), &definition)
    });
    each.collect()
}

fn webhook_documents(arguments: &Webhooks) -> Result<Vec<Document>, Error> {
    let ca_bundle = arguments
        .ca_bundle
        .as_deref()
        .map(read_bundle)
        .transpose()?;
    let Some(endpoint) = arguments.endpoint() else {
        return Ok(Vec::new());
    };
    let authorities = match (&ca_bundle, &arguments.cert_manager) {
        (Some(pem), _) => Authorities::Given(pem),
        (None, Some(certificate)) => Authorities::CertManager(certificate),
        (None, None) => Authorities::Absent,
    };
    let kinds = arguments.kinds()?;
    let (validating, mutating) = configurations(&endpoint, authorities, &kinds);
    Ok(vec![
        document("validating-webhook.yaml".to_owned(), &validating)?,
        document("mutating-webhook.yaml".to_owned(), &mutating)?,
    ])
}

impl Webhooks {
    /// Where the webhook is; clap sees to it that one of the two is there.
    fn endpoint(&self) -> Option<Endpoint> {
        let service = self
            .service
            .as_ref()
            .map(|(namespace, name)| Endpoint::Service {
                namespace: namespace.clone(),
                name: name.clone(),
                port: self.port.unwrap_or(PORT_DEFAULT),
            });
        service.or_else(|| self.url.clone().map(Endpoint::Url))
    }

    /// What is to be sent.
    fn kinds(&self) -> Result<Vec<Registration>, Error> {
        let rules = pages::compile(&self.rules.pages()?)?;
        let (config, settings) = read_config(self.config.as_deref(), &rules)?;
        let mut wanted = config.webhook.foreign_kinds;
        wanted.extend(&self.foreign);
        Ok(registrations(&wanted, &settings))
    }
}

/// The configuration, and what it says to rules. Without a file everything is as by default.
fn read_config(path: Option<&Path>, rules: &Arc<Rules>) -> Result<(Config, Settings), Error> {
    let text = path.map_or(Ok(String::new()), fs::read_to_string);
    let path = path.unwrap_or(Path::new("")).to_owned();
    let text = match text {
        Ok(text) => text,
        Err(source) => return Err(Error::ReadConfig { path, source }),
    };
    let config = if text.trim().is_empty() {
        Ok(Config::default())
    } else {
        yaml::read::<Config>(&text)
    };
    let read = config.and_then(|config| {
        let settings = registry::settings_with(&config, Arc::clone(rules));
        let settings = settings.map_err(|error| error.to_string())?;
        Ok((config, settings))
    });
    read.map_err(|reason| Error::Config { path, reason })
}

fn document(file: String, object: &impl Serialize) -> Result<Document, Error> {
    match yaml::document(object) {
        Ok(yaml) => Ok(Document { file, yaml }),
        Err(source) => Err(Error::Yaml { name: file, source }),
    }
}

fn read_bundle(path: &Path) -> Result<Vec<u8>, Error> {
    let path = path.to_owned();
    let pem = match fs::read(&path) {
        Ok(pem) => pem,
        Err(source) => return Err(Error::ReadBundle { path, source }),
    };
    let text = String::from_utf8_lossy(&pem);
    if text.contains(PRIVATE_KEY) {
        return Err(Error::PrivateKey { path });
    }
    if !text.contains(CERTIFICATE) {
        return Err(Error::NoCertificate { path });
    }
    Ok(pem)
}

fn write_files(documents: &[Document], directory: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory).map_err(|source| Error::Directory {
        path: directory.to_owned(),
        source,
    })?;
    for document in documents {
        let path = directory.join(&document.file);
        fs::write(&path, &document.yaml).map_err(|source| Error::File { path, source })?;
    }
    Ok(())
}

fn print(documents: &[Document], out: &mut dyn Write) -> Result<(), Error> {
    let texts: Vec<&str> = documents.iter().map(|d| d.yaml.as_str()).collect();
    let written = out
        .write_all(texts.join("---\n").as_bytes())
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

/// Reads `NAMESPACE/NAME`.
fn service(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_label(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("give the namespace and the name, as in lockkeeper-system/lockkeeper".to_owned()),
    }
}

/// Checks `NAMESPACE/NAME` of a Certificate.
fn certificate(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && name.split('.').all(is_label) => {
            Ok(text.to_owned())
        }
        _ => Err("give the namespace and the name of the Certificate, as in \
                  lockkeeper-system/lockkeeper"
            .to_owned()),
    }
}

/// Whether this is a DNS-1123 label, as the names of Services and namespaces are.
fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Reads the URL of a webhook, to the rules that the API server has for it.
fn url(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("https://")
        .ok_or("the API server calls only webhooks whose URL starts with https://")?;
    if host.is_empty() || host.starts_with(['/', ':']) {
        return Err("the URL names no host, as in https://lockkeeper.example.com:9443".to_owned());
    }
    if host.contains(['?', '#', '@']) || host.contains(char::is_whitespace) {
        return Err("the URL may have no user, query, fragment or space".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
