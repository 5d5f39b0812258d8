//! Errors of reading definitions and objects.

use crate::manifests::SyntaxError;

/// An error of reading definitions or objects.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a folder cannot be read.
    #[error("cannot read {place}: {reason}; name a file, a folder, - or a revision of git")]
    Read {
        /// The file or the folder.
        place: String,
        /// The reason.
        reason: String,
    },
    /// git does not find the revision or the path.
    #[error(
        "git cannot show {place}: {message}; name a file, a folder, -, REVISION:PATH or a revision that has the path of the other side"
    )]
    Git {
        /// The requested revision and path.
        place: String,
        /// The message of git.
        message: String,
    },
    /// Both sides are revisions without a path.
    #[error(
        "{revision} is neither a file nor a folder; for a revision of git, give {revision}:PATH, or the other side as a file or folder"
    )]
    NoPath {
        /// The revision.
        revision: String,
    },
    /// A document is no YAML or JSON.
    #[error("{}", syntax(place, reason))]
    Syntax {
        /// The file.
        place: String,
        /// The position and the reason.
        reason: SyntaxError,
    },
    /// A definition cannot be decoded.
    #[error("{place}: the definition {name} cannot be read: {field}: {reason}")]
    Definition {
        /// The file.
        place: String,
        /// Its name.
        name: String,
        /// The invalid field.
        field: String,
        /// The reason.
        reason: String,
    },
    /// The definition has an API version that no API server serves any more.
    #[error("{place}: the definition {name} is of {version}; write it as apiextensions.k8s.io/v1")]
    OldDefinition {
        /// The file.
        place: String,
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// A source has a definition twice.
    #[error("{place}: duplicate definition {name}; remove one of them")]
    Twice {
        /// The file with the second one.
        place: String,
        /// Its name.
        name: String,
    },
}

fn syntax(place: &str, reason: &SyntaxError) -> String {
    let separator = if reason.location.is_some() { ":" } else { ": " };
    format!("{place}{separator}{reason}")
}
