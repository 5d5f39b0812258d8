//! Why an object was not converted.

use super::preserved_fields::PRESERVED_MAX_BYTES;
use crate::field_path::FieldPath;
use std::fmt;

/// An object, as messages name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectIdentity {
    /// Its kind; empty if it has none.
    pub kind: String,
    /// Its API version; empty if it has none.
    pub api_version: String,
    /// Its namespace; empty if it is of the cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ObjectIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind.as_str() {
            "" => "object",
            kind => kind,
        };
        match self.namespace.as_str() {
            "" => write!(f, "{kind} {:?}", self.name),
            namespace => write!(f, "{kind} \"{namespace}/{}\"", self.name),
        }
    }
}

/// An object was not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object} cannot be converted from {} to {desired}: {kind}", from(.object))]
pub struct ConvertError {
    /// Which one.
    pub object: Box<ObjectIdentity>,
    /// The API version that was asked for.
    pub desired: String,
    /// Why.
    pub kind: ConvertErrorKind,
}

fn from(object: &ObjectIdentity) -> &str {
    match object.api_version.as_str() {
        "" => "no apiVersion",
        version => version,
    }
}

/// Why an object was not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertErrorKind {
    /// It is no object of Kubernetes.
    #[error("{0}")]
    Malformed(VersionError),
    /// An API version without a group.
    #[error("{0:?} is no group and version, such as example.com/v1")]
    NoGroup(String),
    /// The version that is asked for is of another group.
    #[error("an object stays in its group; ask for a version of that")]
    OtherGroup,
    /// Nobody has registered the kind.
    #[error(
        "no conversion of this kind is known here; ask a server that has it, or name that one in spec.conversion of the \
         CustomResourceDefinition"
    )]
    UnknownKind,
    /// The kind has no such version.
    #[error("version {version:?} is not known here, only {}; upgrade this server", known.join(", "))]
    UnknownVersion {
        /// What is not known.
        version: String,
        /// What is.
        known: Vec<String>,
    },
    /// It does not fit its version, or the other one.
    #[error("{0}")]
    Incompatible(VersionError),
    /// The annotation would be too large.
    #[error(
        "metadata.annotations: {bytes} bytes would have to be kept that the other version has no field for, and \
         {PRESERVED_MAX_BYTES} are the most; read it in the version that has them, and make them smaller there"
    )]
    PreservedFieldsTooLarge {
        /// How large.
        bytes: usize,
    },
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct VersionError {
    /// The field.
    pub field: FieldPath,
    /// What would be accepted.
    pub reason: String,
}

impl VersionError {
    /// At this field, for this reason: say what would be accepted.
    #[must_use]
    pub fn new(field: FieldPath, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { field, reason }
    }
}

impl From<VersionError> for ConvertErrorKind {
    fn from(fault: VersionError) -> Self {
        Self::Incompatible(fault)
    }
}

/// Kinds cannot be registered like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// A kind is there twice.
    #[error("{kind}.{group} is registered twice; give all its versions to one `Kind`")]
    DuplicateKind {
        /// Its group.
        group: String,
        /// Its name.
        kind: String,
    },
    /// A version of a kind is there twice.
    #[error("{kind}.{group} has version {version} twice; remove one")]
    DuplicateVersion {
        /// The kind's group.
        group: String,
        /// The kind's name.
        kind: String,
        /// The version.
        version: String,
    },
    /// A kind with nothing to convert between.
    #[error("{kind}.{group} has fewer than two versions; a kind with one needs no conversion")]
    TooFewVersions {
        /// The kind's group.
        group: String,
        /// The kind's name.
        kind: String,
    },
}
