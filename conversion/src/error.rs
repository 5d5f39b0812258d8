//! Errors of conversions and of the registration of kinds.

use lockkeeper_api::field_path::FieldPath;
use std::fmt;

/// The maximum total size of the annotations with preserved fields, in bytes: half of Kubernetes' limit for all annotations of
/// an object.
pub const PRESERVED_MAX_BYTES: usize = 128 * 1024;

/// Names an object in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectIdentity {
    /// The kind; empty if the object has none.
    pub kind: String,
    /// The API version; empty if the object has none.
    pub api_version: String,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// `metadata.name`.
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

/// An object could not be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object} cannot be converted from {} to {desired}: {kind}", source_version(.object))]
pub struct ConvertError {
    /// The object.
    pub object: Box<ObjectIdentity>,
    /// The requested API version.
    pub desired: String,
    /// The cause.
    pub kind: ConvertErrorKind,
}

fn source_version(object: &ObjectIdentity) -> &str {
    match object.api_version.as_str() {
        "" => "no apiVersion",
        version => version,
    }
}

/// The cause of a failed conversion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertErrorKind {
    /// The value is not a Kubernetes object.
    #[error("{0}")]
    Malformed(VersionError),
    /// The API version has no group.
    #[error("{0:?} is not a group and version, such as example.com/v1")]
    NoGroup(String),
    /// The requested version belongs to another group.
    #[error("a conversion cannot change the group; request a version of the same group")]
    OtherGroup,
    /// The kind is not registered.
    #[error(
        "this server has no conversion for the kind; register the kind here, or point spec.conversion of the \
         CustomResourceDefinition at the server that has it"
    )]
    UnknownKind,
    /// The kind is registered without this version.
    #[error("unknown version {version:?}, known are {}; upgrade this server", known.join(", "))]
    UnknownVersion {
        /// The unknown version.
        version: String,
        /// The registered versions.
        known: Vec<String>,
    },
    /// The object does not match the type of its version, or of the other one.
    #[error("{0}")]
    Incompatible(VersionError),
    /// The annotations with preserved fields would be too large.
    #[error(
        "metadata.annotations: fields that the other version lacks need {bytes} bytes, more than the maximum of \
         {PRESERVED_MAX_BYTES}; read the object in the version that has these fields, and make them smaller there"
    )]
    PreservedFieldsTooLarge {
        /// Their size in bytes.
        bytes: usize,
    },
}

/// A field with a value that a version cannot represent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct VersionError {
    /// The path of the field.
    pub field: FieldPath,
    /// The values that are accepted.
    pub reason: String,
}

impl VersionError {
    /// An error at `field`. `reason` states the accepted values.
    #[must_use]
    pub fn new(field: FieldPath, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { field, reason }
    }
}

impl From<VersionError> for ConvertErrorKind {
    fn from(error: VersionError) -> Self {
        Self::Incompatible(error)
    }
}

/// A set of kinds or versions that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two kinds have the same group and name.
    #[error("{kind}.{group} is registered twice; give all its versions to one `Kind`")]
    DuplicateKind {
        /// The group.
        group: String,
        /// The name.
        kind: String,
    },
    /// Two versions of a kind have the same name.
    #[error("{kind}.{group} has version {version} twice; remove one")]
    DuplicateVersion {
        /// The kind's group.
        group: String,
        /// The kind's name.
        kind: String,
        /// The version.
        version: String,
    },
    /// A kind with fewer than two versions.
    #[error("{kind}.{group} has fewer than two versions; a kind with one needs no conversion")]
    TooFewVersions {
        /// The kind's group.
        group: String,
        /// The kind's name.
        kind: String,
    },
}
