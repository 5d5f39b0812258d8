//! Errors of the commands.

use crate::cel::ExpressionError;
use crate::diff;
use crate::files::{FileEncodeError, FileReadError};
use crate::release_features::MUTATING_POLICIES;
use crate::user_rule_dirs;
use crate::versions;
use lockkeeper_crd_schema::builtin::Release;
use std::io;
use std::path::PathBuf;

/// The line that begins a certificate in PEM.
pub(super) const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// An error of a command of crdgen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory does not exist and cannot be created.
    #[error("cannot make the directory {path}; name one that you may write to with --output-dir")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}; name a directory that you may write to with --output-dir")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of the directory cannot be read for the comparison.
    #[error(transparent)]
    Unreadable(#[from] FileReadError),
    /// The files of the directory differ from the output.
    #[error(
        "out of date: {files} of the files in {folder}; rewrite them with --output-dir {folder}"
    )]
    Differs {
        /// The number of files that differ.
        files: usize,
        /// The directory.
        folder: PathBuf,
    },
    /// The declarations of kinds of jobs cannot be read.
    #[error(transparent)]
    JobKinds(Box<diff::source::Error>),
    /// There is no declaration.
    #[error("no JobKind in {0}; give files with one")]
    NoJobKind(String),
    /// A declaration has mistakes.
    #[error("JobKind {name} in {path}: {reason}")]
    InvalidJobKind {
        /// The path that was given.
        path: String,
        /// The name of the object.
        name: String,
        /// All mistakes.
        reason: String,
    },
    /// The default queue needs a mutating policy.
    #[error(
        "--default-queue needs Kubernetes {MUTATING_POLICIES}, not {0}; use --queue-required, which rejects jobs without a queue"
    )]
    DefaultQueueUnsupported(Release),
    /// The file with the CA's certificates cannot be read.
    #[error("cannot read the CA bundle {path}; name a readable PEM file with --ca-bundle")]
    ReadBundle {
        /// The file.
        path: PathBuf,
        /// The error of the system.
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
    /// The file holds a private key. Every user may read a webhook configuration.
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
        /// The error of the system.
        source: io::Error,
    },
    /// The configuration file is invalid.
    #[error("the configuration {path} is invalid: {reason}")]
    Config {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The rules of users cannot be read.
    #[error(transparent)]
    Rules(#[from] user_rule_dirs::Error),
    /// An expression of a rule does not compile.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// Definitions cannot be compared.
    #[error(transparent)]
    Diff(#[from] diff::cli::Error),
    /// The stored versions are unknown.
    #[error(transparent)]
    Versions(#[from] versions::cli::Error),
    /// An object has no YAML form.
    #[error(transparent)]
    Unwritable(#[from] FileEncodeError),
    /// The output cannot be written to.
    #[error("cannot write the output; write to files with --output-dir instead")]
    Output(#[source] io::Error),
}
