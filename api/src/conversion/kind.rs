//! A kind and its versions.

use super::difference::ListKey;
use super::error::{RegistryError, VersionError};
use crate::field_path::FieldPath;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};
use std::collections::BTreeSet;
use std::marker::PhantomData;

/// What holds all that any version of a kind can say: the fields beside `apiVersion`, `kind` and `metadata`.
///
/// It is never stored or shown, so it may change with any release, as long as what was kept of it in annotations is still
/// found at its place.
pub trait Hub: Serialize + DeserializeOwned {
    /// Lists whose items have a key. What a version lacks of an item is put back by its key; other lists are taken whole.
    const LIST_KEYS: &'static [ListKey] = &[];
}

/// One version of a kind: the fields beside `apiVersion`, `kind` and `metadata`.
///
/// Going to the hub must keep all; coming from it may lose what the version has no field for. Neither may refuse what the
/// schema of the version lets in, or the object can no longer be read.
pub trait Version: Serialize + DeserializeOwned {
    /// What all versions of the kind are converted by.
    type Hub: Hub;

    /// Its name, such as `v1beta1`.
    const NAME: &'static str;

    /// What of the hub the version cannot say, wholly or in full, as `spec.windows.*.zone`; `*` is any item or entry, and
    /// `spec.windows[]` the order of a list. It changes nothing in a conversion: [`super::check`] holds the conversion to it.
    const LACKS: &'static [&'static str];

    /// As [`Hub::KEYED`], for the fields of this version.
    const LIST_KEYS: &'static [ListKey] = &[];

    /// The same as the hub has it.
    ///
    /// # Errors
    ///
    /// When a value means nothing; the field is one of this version.
    fn into_hub(self) -> Result<Self::Hub, VersionError>;

    /// What this version can say of it.
    ///
    /// # Errors
    ///
    /// When this version cannot say it, not even with less; the field is one of the hub.
    fn from_hub(hub: Self::Hub) -> Result<Self, VersionError>;
}

/// A kind with its versions.
#[derive(Clone, Debug)]
pub struct Kind {
    group: String,
    name: String,
    list_keys: &'static [ListKey],
    spokes: Vec<Spoke>,
}

/// A kind whose versions are being told; all of them have the same hub.
#[derive(Clone, Debug)]
pub struct KindBuilder<H> {
    kind: Kind,
    hub: PhantomData<fn() -> H>,
}

impl Kind {
    /// A kind of this group and name, as `Reservation` of `example.com`.
    #[must_use]
    pub fn builder<H: Hub>(group: impl Into<String>, name: impl Into<String>) -> KindBuilder<H> {
        KindBuilder {
            kind: Self {
                group: group.into(),
                name: name.into(),
                list_keys: H::LIST_KEYS,
                spokes: Vec::new(),
            },
            hub: PhantomData,
        }
    }

    /// Its group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Its name, such as `Reservation`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its versions.
    pub fn version_names(&self) -> impl Iterator<Item = &str> {
        self.spokes.iter().map(Spoke::name)
    }

    pub(super) fn list_keys(&self) -> &'static [ListKey] {
        self.list_keys
    }

    pub(super) fn spoke(&self, version: &str) -> Option<&Spoke> {
        self.spokes.iter().find(|it| it.name == version)
    }
}

impl<H: Hub> KindBuilder<H> {
    /// Adds a version.
    #[must_use]
    pub fn version<V: Version<Hub = H>>(mut self) -> Self {
        self.kind.spokes.push(Spoke {
            name: V::NAME,
            lacks: V::LACKS,
            list_keys: V::LIST_KEYS,
            to_hub: decode_to_hub::<V>,
            from_hub: encode_from_hub::<V>,
        });
        self
    }

    /// The kind with the versions that were added.
    ///
    /// # Errors
    ///
    /// When a version is there twice, or there are fewer than two.
    pub fn build(self) -> Result<Kind, RegistryError> {
        let kind = self.kind;
        let (group, name) = (kind.group.clone(), kind.name.clone());
        let mut seen = BTreeSet::new();
        if let Some(twice) = kind.spokes.iter().find(|it| !seen.insert(it.name)) {
            return Err(RegistryError::DuplicateVersion {
                group,
                kind: name,
                version: twice.name.to_owned(),
            });
        }
        if kind.spokes.len() < 2 {
            return Err(RegistryError::TooFewVersions { group, kind: name });
        }
        Ok(kind)
    }
}

/// A version without its type.
#[derive(Clone, Debug)]
pub(super) struct Spoke {
    name: &'static str,
    lacks: &'static [&'static str],
    list_keys: &'static [ListKey],
    to_hub: fn(&Value) -> Result<Value, VersionError>,
    from_hub: fn(&Value) -> Result<Value, VersionError>,
}

impl Spoke {
    pub(super) fn name(&self) -> &str {
        self.name
    }

    pub(super) fn lacks(&self) -> &'static [&'static str] {
        self.lacks
    }

    pub(super) fn list_keys(&self) -> &'static [ListKey] {
        self.list_keys
    }

    /// The hub's fields of these.
    pub(super) fn to_hub(&self, payload: &Value) -> Result<Value, VersionError> {
        (self.to_hub)(payload)
    }

    /// This version's fields of the hub's.
    pub(super) fn version_from_hub(&self, hub: &Value) -> Result<Value, VersionError> {
        (self.from_hub)(hub)
    }
}

fn decode_to_hub<V: Version>(payload: &Value) -> Result<Value, VersionError> {
    encode(&decode::<V>(payload)?.into_hub()?)
}

fn encode_from_hub<V: Version>(hub: &Value) -> Result<Value, VersionError> {
    encode(&V::from_hub(decode(hub)?)?)
}

fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, VersionError> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| VersionError::new(field_path(error.path()), error.inner().to_string()))
}

fn encode(value: &impl Serialize) -> Result<Value, VersionError> {
    serde_json::to_value(value)
        .map_err(|error| VersionError::new(FieldPath::default(), error.to_string()))
}

fn field_path(path: &Path) -> FieldPath {
    let at = FieldPath::default();
    path.iter().fold(at, |at, segment| match segment {
        Segment::Seq { index } => at.index(*index),
        Segment::Map { key } => at.named(key.as_str()),
        // What stands in a variant is written without it; and past what is unknown there is nothing to name.
        Segment::Enum { .. } | Segment::Unknown => at,
    })
}
