//! The command line.

mod error;
mod files;
mod job_kinds;
mod policies;
mod release_parser;

use crate::chart::{self, ChartError};
use crate::definitions_for;
use crate::diff;
use crate::files::{Document, FileEncodeError};
use crate::json_schemas;
use crate::user_rule_dirs::{self, RuleDirs};
use crate::versions::cli as versions;
use crate::webhooks::{CaSource, Endpoint, NAME, configurations};
use crate::yaml;
use clap::{ArgGroup, Args, Subcommand};
use error::CERTIFICATE;
pub use error::Error;
use files::Output;
pub use job_kinds::JobKinds;
use job_kinds::{job_kind_documents, read_job_kinds};
use lockkeeper_api::config::{Config, ForeignKinds};
use lockkeeper_api::names::is_dns_label;
use lockkeeper_crd_schema::builtin::Release;
use lockkeeper_policies::reference;
use lockkeeper_policies::registry::{self, Registration, registrations};
use lockkeeper_policies::settings::Settings;
use lockkeeper_policies::user_rules::UserRules;
pub use policies::Policies;
use policies::policy_documents;
pub use release_parser::ReleaseParser;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The commands of `crdgen` and `lockkeeper crds`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Emit the CRDs of lockkeeper's kinds
    Definitions(Definitions),
    /// Emit the webhook configurations that send objects to `lockkeeper serve`
    Webhooks(Webhooks),
    /// Emit JSON Schemas for editors and kubeconform, and an OpenAPI document
    Schemas(Schemas),
    /// Emit the generated files of the Helm chart
    Chart(Chart),
    /// Regenerate every committed artifact (chart, schemas, rule pages)
    All(All),
    /// Emit admission policies that validate without the webhook
    Policies(Policies),
    /// Emit the roles and admission policies that declared kinds of jobs need
    JobKinds(JobKinds),
    /// Compare two sets of CRDs and report breaking changes
    Diff(diff::cli::Diff),
    /// Print a `StorageVersionMigration` for existing objects
    Migration(versions::Migrate),
    /// Check whether a version can be removed from a CRD
    CheckRemoval(versions::Remove),
}

/// Arguments of `definitions`.
#[derive(Debug, Default, Args)]
pub struct Definitions {
    /// The configuration file of `lockkeeper serve`
    ///
    /// The schemas omit rules that it weakens or grants exceptions from: schemas support neither.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Kubernetes version of the cluster
    ///
    /// For 1.33 the schemas omit the rules about the quantities of quotas, which its API server rejects as too expensive:
    /// only the webhook evaluates them.
    #[arg(long, value_name = "VERSION", default_value_t, value_parser = ReleaseParser)]
    kubernetes_version: Release,

    #[command(flatten)]
    rules: RuleDirs,

    #[command(flatten)]
    output: Output,
}

/// Arguments of `webhooks`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("endpoint").required(true))]
pub struct Webhooks {
    /// Service of the webhook
    #[arg(long, value_name = "NAMESPACE/NAME", group = "endpoint", value_parser = service)]
    service: Option<(String, String)>,

    /// Port of the Service [default: 443]
    #[arg(long, value_name = "N", conflicts_with = "url", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// URL of a webhook outside the cluster; /validate and /mutate are appended
    #[arg(long, group = "endpoint", value_parser = url)]
    url: Option<String>,

    /// PEM file with the CA certificates of the webhook
    ///
    /// Without it the API server trusts the CAs of its own machine, unless `lockkeeper serve --tls-secret` or cert-manager
    /// injects the bundle.
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,

    /// Projects whose kinds are also registered: kueue, koordinator
    ///
    /// Only operations that an enabled rule covers are registered.
    #[arg(long, value_name = "PROJECT", value_delimiter = ',')]
    foreign: Vec<ForeignKinds>,

    /// The configuration file of `lockkeeper serve`
    ///
    /// Its webhook.foreignKinds is added to --foreign, and its rule actions select the operations and enable the rules of
    /// --rules: regenerate the configurations when any of these changes.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    rules: RuleDirs,

    /// Files or folders with `JobKind` objects whose new jobs the webhook suspends
    ///
    /// With webhook.preview in the configuration it also says what the controller will do with them.
    #[arg(long, value_name = "PATH")]
    job_kinds: Vec<String>,

    /// cert-manager Certificate whose CA bundle is injected
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = certificate, conflicts_with = "ca_bundle")]
    cert_manager: Option<String>,

    #[command(flatten)]
    output: Output,
}

/// Arguments of `schemas`.
#[derive(Debug, Args)]
pub struct Schemas {
    #[command(flatten)]
    output: Output,
}

/// Arguments of `chart`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where").required(true).args(["output_dir", "check"]))]
pub struct Chart {
    #[command(flatten)]
    output: Output,
}

/// Arguments of `all`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where").required(true).args(["output_dir", "check"]))]
pub struct All {
    #[command(flatten)]
    output: Output,
}

/// The end of the first line of any private key in PEM.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// The port of a Service if none is given, as in Kubernetes.
const PORT_DEFAULT: u16 = 443;

impl Default for Command {
    fn default() -> Self {
        Self::Definitions(Definitions::default())
    }
}

/// The result of a command without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No findings: exit code 0.
    Done,
    /// Findings: exit code 1.
    Findings,
}

impl Error {
    /// The exit code.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            // The exit code 1 of these commands means a finding.
            Self::Diff(_) | Self::Versions(_) => 2,
            _ => 1,
        }
    }
}

/// Runs the command like [`run`], and returns its result.
///
/// # Errors
///
/// Those of [`run`].
pub fn outcome(command: Command, out: &mut dyn Write) -> Result<Outcome, Error> {
    let is_fine = match command {
        Command::Diff(arguments) => diff::cli::run(&arguments, out)? != diff::ChangeClass::Breaking,
        Command::CheckRemoval(arguments) => versions::remove(&arguments, out)?,
        command => return run(command, out).map(|()| Outcome::Done),
    };
    Ok(if is_fine {
        Outcome::Done
    } else {
        Outcome::Findings
    })
}

/// Runs the command: its output goes to files if it names a directory, to `out` otherwise.
///
/// A closed pipe, such as with `head`, is no error.
///
/// # Errors
///
/// When something cannot be read or written; each error has its remedy.
pub fn run(command: Command, out: &mut dyn Write) -> Result<(), Error> {
    let (documents, output) = match command {
        Command::Definitions(arguments) => (definition_documents(&arguments)?, arguments.output),
        Command::Policies(arguments) => (policy_documents(&arguments)?, arguments.output),
        Command::JobKinds(arguments) => (job_kind_documents(&arguments)?, arguments.output),
        Command::Webhooks(arguments) => (webhook_documents(&arguments)?, arguments.output),
        Command::Schemas(arguments) => (schema_documents()?, arguments.output),
        Command::Chart(arguments) => (chart_documents()?, arguments.output),
        Command::All(arguments) => return emit_all(&arguments.output, out),
        Command::Diff(arguments) => return Ok(diff::cli::run(&arguments, out).map(drop)?),
        Command::Migration(arguments) => return Ok(versions::migrate(&arguments, out)?),
        Command::CheckRemoval(arguments) => return Ok(versions::remove(&arguments, out).map(drop)?),
    };
    output.emit(&documents, &[], out)
}

/// Compares the generated files in a repository with the output, and prints the differences.
///
/// # Errors
///
/// When a file differs, or something cannot be read.
pub fn check(repository: PathBuf, out: &mut dyn Write) -> Result<(), Error> {
    emit_all(&Output::for_check(repository), out)
}

/// The folders of a repository that have generated files only.
const GENERATED_DIRS: [&str; 2] = ["charts/lockkeeper/templates/generated", "schemas"];

fn emit_all(output: &Output, out: &mut dyn Write) -> Result<(), Error> {
    let mut all = Vec::new();
    let parts = [
        ("charts/lockkeeper", chart_documents()?),
        ("schemas", schema_documents()?),
        ("docs/rules", rule_documents()),
    ];
    for (folder, documents) in parts {
        all.extend(documents.into_iter().map(|document| Document {
            file: format!("{folder}/{}", document.file),
            text: document.text,
        }));
    }
    output.emit(&all, &GENERATED_DIRS, out)
}

fn schema_documents() -> Result<Vec<Document>, Error> {
    let files = json_schemas::files().into_iter().map(|schema_file| {
        let text = yaml::json(&schema_file.schema).map_err(|source| FileEncodeError {
            file: schema_file.path.clone(),
            source,
        })?;
        Ok(Document {
            file: schema_file.path,
            text,
        })
    });
    files.collect()
}

/// The pages of the rules, and the list of them.
fn rule_documents() -> Vec<Document> {
    let pages = reference::entries().into_iter().map(|entry| Document {
        file: reference::file_name(&entry.rule),
        text: entry.rule.doc.to_owned(),
    });
    let list = Document {
        file: "README.md".to_owned(),
        text: reference::index(),
    };
    pages.chain([list]).collect()
}

fn definition_documents(arguments: &Definitions) -> Result<Vec<Document>, Error> {
    let (_, settings) = read_config(
        arguments.config.as_deref(),
        &user_rule_dirs::compile(&arguments.rules.pages()?)?,
    )?;
    let definitions = definitions_for(&settings, arguments.kubernetes_version)?;
    let each = definitions.into_iter().map(|mut definition| {
        // Uninstalling selects by this label, as the objects of the chart have it.
        let labels = definition.metadata.labels.get_or_insert_default();
        labels.insert(chart::PART_OF.to_owned(), NAME.to_owned());
        let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
        Ok(Document::from_object(
            format!("{group}_{plural}.yaml"),
            &definition,
        )?)
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
        (Some(pem), _) => CaSource::Inline(pem),
        (None, Some(certificate)) => CaSource::CertManager(certificate),
        (None, None) => CaSource::Absent,
    };
    let kinds = arguments.kinds()?;
    let (validating, mutating) = configurations(&endpoint, authorities, &kinds);
    Ok(vec![
        Document::from_object("validating-webhook.yaml".to_owned(), &validating)?,
        Document::from_object("mutating-webhook.yaml".to_owned(), &mutating)?,
    ])
}

fn chart_documents() -> Result<Vec<Document>, Error> {
    let files = chart::files().map_err(|error| match error {
        ChartError::Yaml(source) => Error::Unwritable(FileEncodeError {
            file: "a file of the chart".to_owned(),
            source,
        }),
        ChartError::Expression(error) => Error::Expression(error),
    })?;
    let documents = files
        .into_iter()
        .map(|chart::File { path, text }| Document { file: path, text });
    Ok(documents.collect())
}

impl Webhooks {
    /// The address of the webhook; clap requires one of the two flags.
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

    /// The kinds whose objects are sent.
    fn kinds(&self) -> Result<Vec<Registration>, Error> {
        let rules = user_rule_dirs::compile(&self.rules.pages()?)?;
        let (config, settings) = read_config(self.config.as_deref(), &rules)?;
        let mut foreign_kinds = config.webhook.foreign_kinds;
        foreign_kinds.extend(&self.foreign);
        let mut out = registrations(&foreign_kinds, &settings);
        if !self.job_kinds.is_empty() {
            let declared = read_job_kinds(&self.job_kinds)?;
            out.extend(declared.iter().map(|it| {
                registry::declared(&it.group, &it.version, &it.plural, config.webhook.preview)
            }));
        }
        Ok(out)
    }
}

/// The configuration and its settings for rules; the default without a file.
fn read_config(path: Option<&Path>, rules: &Arc<UserRules>) -> Result<(Config, Settings), Error> {
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

fn read_bundle(path: &Path) -> Result<Vec<u8>, Error> {
    let path = path.to_owned();
    let pem = match fs::read(&path) {
        Ok(pem) => pem,
        Err(source) => return Err(Error::ReadBundle { path, source }),
    };
    let text = String::from_utf8_lossy(&pem);
    // Every user may read a webhook configuration.
    if text.contains(PRIVATE_KEY) {
        return Err(Error::PrivateKey { path });
    }
    if !text.contains(CERTIFICATE) {
        return Err(Error::NoCertificate { path });
    }
    Ok(pem)
}

/// Reads `NAMESPACE/NAME`.
fn service(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_dns_label(namespace) && is_dns_label(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("give the namespace and the name, as in lockkeeper-system/lockkeeper".to_owned()),
    }
}

/// Checks `NAMESPACE/NAME` of a Certificate.
fn certificate(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_dns_label(namespace) && name.split('.').all(is_dns_label) => {
            Ok(text.to_owned())
        }
        _ => Err("give the namespace and the name of the Certificate, as in \
                  lockkeeper-system/lockkeeper"
            .to_owned()),
    }
}

/// Parses the URL of a webhook by the rules of the API server.
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
