//! What to check, and how.

use lockkeeper_check::{Release, SetupError, UnknownSelector};
use lockkeeper_policies::registry::UnknownRule;
use serde::{Deserialize, Deserializer};
use thiserror::Error;

/// The manifests to check. Definitions and admission policies among them are used, too.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CheckRequest {
    /// The files to check.
    pub files: Vec<SourceFile>,
    /// The files before a change. An object in both is checked as an update.
    pub old_files: Vec<SourceFile>,
    /// The release of Kubernetes for built-in kinds, as in `--kubernetes-version`.
    #[serde(deserialize_with = "release")]
    pub kubernetes_version: Release,
    /// Whether unknown kinds are errors, as in `--strict`.
    pub strict: bool,
    /// Whether the files are all objects of a cluster, as in `--closed`.
    pub closed: bool,
    /// The rules to check, all by default, as in `--select`.
    pub select: Vec<String>,
    /// The rules to skip, as in `--ignore`.
    pub ignore: Vec<String>,
}

/// A named text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// The name in findings.
    pub name: String,
    /// YAML or JSON, with any number of documents.
    pub text: String,
}

/// A request that cannot be answered.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The request is not the JSON of a [`CheckRequest`].
    #[error("the request is not valid: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A selector names no rule.
    #[error(transparent)]
    Selector(#[from] UnknownSelector),
    /// A rule of the settings does not exist.
    #[error(transparent)]
    Rule(#[from] UnknownRule),
    /// A generated schema cannot be read, which is a bug.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Reads a release; the newest one if the text is empty.
fn release<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Release, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(Release::NEWEST);
    }
    text.parse().map_err(serde::de::Error::custom)
}
