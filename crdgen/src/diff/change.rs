//! A change and its class.

use super::{ChangeCode, SchemaPath};
use serde::Serialize;
use std::fmt;

/// The class of a change, ordered by severity.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    serde::Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeClass {
    /// Clients and stored objects are not affected.
    Compatible,
    /// No effect after all stored objects have been rewritten.
    NeedsStorageMigration,
    /// Some clients that could write or read objects no longer can, or get a different result.
    Breaking,
}

impl ChangeClass {
    /// The name in every output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::NeedsStorageMigration => "needs-storage-migration",
            Self::Breaking => "breaking",
        }
    }
}

impl fmt::Display for ChangeClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The effect of a change on the set of accepted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// No effect.
    Same,
    /// More values are accepted.
    Wider,
    /// Fewer values are accepted.
    Narrower,
    /// Both, or unknown.
    Unclear,
}

/// The effect on stored objects in Kubernetes 1.33 and later, which ratchets: an update may leave invalid values
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "stored", content = "until")]
pub enum StoredObjectsEffect {
    /// Nothing.
    Untouched,
    /// Invalid objects are accepted until something at this path changes.
    Until(SchemaPath),
    /// Objects that have duplicates may keep them and gain others.
    Duplicates,
    /// Validated on every update, even if the update changes nothing there.
    EveryUpdate,
    /// Stored values are dropped when an object is read, and lost when it is written.
    Dropped,
    /// Stored objects can no longer be requested.
    Gone,
}

impl fmt::Display for StoredObjectsEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untouched => f.write_str("stored objects pass"),
            Self::Until(place) => {
                write!(
                    f,
                    "stored objects that do not meet it pass until {place} changes"
                )
            }
            Self::Duplicates => f.write_str("stored objects with duplicates still pass"),
            Self::EveryUpdate => f.write_str("stored objects are validated on every update"),
            Self::Dropped => f.write_str("values in stored objects are dropped"),
            Self::Gone => f.write_str("stored objects can no longer be reached"),
        }
    }
}

/// The location of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeLocation {
    /// In the definition, at this field; empty for all of it.
    Definition(&'static str),
    /// In an entry of `spec.versions`, at this field; empty for all of it.
    Version(String, &'static str),
    /// In the schema of a version.
    Schema(String, SchemaPath),
}

impl ChangeLocation {
    /// The version of the location.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Definition(_) => None,
            Self::Version(version, _) | Self::Schema(version, _) => Some(version),
        }
    }

    /// The field path.
    #[must_use]
    pub fn field(&self) -> String {
        match self {
            Self::Definition(field) | Self::Version(_, field) => (*field).to_owned(),
            Self::Schema(_, path) => path.to_string(),
        }
    }
}

impl fmt::Display for ChangeLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition("") => f.write_str("the definition"),
            Self::Definition(field) => f.write_str(field),
            Self::Version(version, "") => write!(f, "versions[{version}]"),
            Self::Version(version, field) => write!(f, "versions[{version}].{field}"),
            Self::Schema(version, path) => write!(f, "{version} {path}"),
        }
    }
}

/// One change of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name of the definition.
    pub definition: String,
    /// The location.
    pub place: ChangeLocation,
    /// The change code.
    pub code: ChangeCode,
    /// The class.
    pub class: ChangeClass,
    /// The effect on the set of accepted values.
    pub effect: Effect,
    /// The description: lower case, no full stop.
    pub description: String,
    /// The effect on stored objects.
    pub stored: StoredObjectsEffect,
}

impl Change {
    pub(super) fn for_definition(
        name: &str,
        field: &'static str,
        code: ChangeCode,
        what: String,
    ) -> Self {
        Self::new(name, ChangeLocation::Definition(field), code, what)
    }

    pub(super) fn new(
        definition: &str,
        place: ChangeLocation,
        code: ChangeCode,
        description: String,
    ) -> Self {
        let stored = match code {
            ChangeCode::DefinitionRemoved
            | ChangeCode::StoredVersionRemoved
            | ChangeCode::ScopeChanged => StoredObjectsEffect::Gone,
            _ => StoredObjectsEffect::Untouched,
        };
        Self {
            definition: definition.to_owned(),
            place,
            code,
            class: code.class(),
            effect: Effect::Same,
            description,
            stored,
        }
    }

    /// Makes the change compatible: every value that was accepted still is, for this reason.
    pub(super) fn accept_former_values(&mut self, reason: &str) {
        self.class = ChangeClass::Compatible;
        self.effect = Effect::Same;
        self.stored = StoredObjectsEffect::Untouched;
        self.description = format!("{}; {reason}", self.description);
    }

    pub(super) fn with_class(mut self, class: ChangeClass) -> Self {
        self.class = class;
        self
    }
}
