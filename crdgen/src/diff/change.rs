//! One change, and whom it hurts.

use super::{ChangeCode, SchemaPath};
use serde::Serialize;
use std::fmt;

/// How bad a change is; the worst comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeClass {
    /// Whoever writes or reads objects, and whatever is stored, goes on as before.
    Compatible,
    /// Goes on as before once all stored objects have been written anew.
    NeedsStorageMigration,
    /// Somebody who wrote or read objects yesterday cannot today, or gets something else.
    Breaking,
}

impl ChangeClass {
    /// Its name in every output.
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

/// What a change does to the set of values that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It stays as it is.
    Same,
    /// Some values are accepted that were not.
    Wider,
    /// Some values are no longer accepted.
    Narrower,
    /// Both, or it cannot be told.
    Unclear,
}

/// What happens to objects that are stored, by the rules of Kubernetes 1.33 and later, which let pass what an update
/// leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "stored", content = "until")]
pub enum StoredObjectsEffect {
    /// Nothing.
    Untouched,
    /// One that does not meet it is taken until something at this place changes.
    Until(SchemaPath),
    /// One that has duplicates already may keep them and gain others.
    Duplicates,
    /// It is asked on every update, also on one that changes nothing there.
    EveryUpdate,
    /// What was there is dropped when an object is read, and lost when it is written.
    Dropped,
    /// They can no longer be reached.
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
            Self::Duplicates => f.write_str("stored objects that have duplicates go on passing"),
            Self::EveryUpdate => f.write_str("stored objects are asked on every update"),
            Self::Dropped => f.write_str("what stored objects have there is dropped"),
            Self::Gone => f.write_str("stored objects can no longer be reached"),
        }
    }
}

/// Where a change is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeLocation {
    /// In the definition, at this field; empty for all of it.
    Definition(&'static str),
    /// In what is said of a version, at this field; empty for all of it.
    Version(String, &'static str),
    /// In the schema of a version.
    Schema(String, SchemaPath),
}

impl ChangeLocation {
    /// The version that it is in.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Definition(_) => None,
            Self::Version(version, _) | Self::Schema(version, _) => Some(version),
        }
    }

    /// The field, as people write it.
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
    /// Where it is.
    pub place: ChangeLocation,
    /// What kind of change it is.
    pub code: ChangeCode,
    /// How bad it is.
    pub class: ChangeClass,
    /// What it does to the set of accepted values.
    pub effect: Effect,
    /// What changed: lower-case, no full stop.
    pub description: String,
    /// What happens to stored objects.
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

    pub(super) fn with_class(mut self, class: ChangeClass) -> Self {
        self.class = class;
        self
    }
}
