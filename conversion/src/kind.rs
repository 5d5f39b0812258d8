//! A kind and its versions.

use crate::difference::ListKey;
use crate::error::{RegistryError, VersionError};
use lockkeeper_api::field_path::FieldPath;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};
use std::collections::BTreeSet;
use std::marker::PhantomData;

/// A type with every field of every version of a kind, beside `apiVersion`, `kind` and `metadata`.
///
/// It is neither stored nor served, so it may change in any release, as long as the paths of fields that are preserved in
/// annotations stay valid.
pub trait Hub: Serialize + DeserializeOwned {
    /// Lists with keyed items. Fields of their items are preserved and restored item by item; other lists are restored as a
    /// whole.
    const LIST_KEYS: &'static [ListKey] = &[];
}

/// One version of a kind: the fields beside `apiVersion`, `kind` and `metadata`.
///
/// `into_hub` must keep every field; `from_hub` may drop fields that the version lacks. Neither may reject an object that the
/// schema of the version accepts: such an object could no longer be read.
pub trait Version: Serialize + DeserializeOwned {
    /// The hub that all versions of the kind share.
    type Hub: Hub;

    /// The name, such as `v1beta1`.
    const NAME: &'static str;

    /// Hub fields that the version cannot represent, or not exactly, such as `spec.windows.*.zone`; `*` is any item or entry,
    /// and `spec.windows[]` is the order of a list. Conversions do not read it: [`check_round_trip`](crate::check_round_trip)
    /// reports losses that are not declared here.
    const LACKS: &'static [&'static str];

    /// Lists with keyed items among the fields of this version; see [`Hub::LIST_KEYS`].
    const LIST_KEYS: &'static [ListKey] = &[];

    /// Converts to the hub.
    ///
    /// # Errors
    ///
    /// If a value is invalid; the error names a field of this version.
    fn into_hub(self) -> Result<Self::Hub, VersionError>;

    /// Converts from the hub, dropping fields that this version lacks.
    ///
    /// # Errors
    ///
    /// If this version cannot represent the value even with dropped fields; the error names a field of the hub.
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

/// Collects the versions of a kind; all have the same hub.
#[derive(Clone, Debug)]
pub struct KindBuilder<H> {
    kind: Kind,
    // A function pointer: the builder owns no hub, so it is `Send` and `Sync` for any type.
    hub: PhantomData<fn() -> H>,
}

impl Kind {
    /// Starts a kind with this group and name, such as `Reservation` of `example.com`.
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

    /// The API group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The name, such as `Reservation`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the versions, in the order in which they were added.
    pub fn version_names(&self) -> impl Iterator<Item = &str> {
        self.spokes.iter().map(Spoke::name)
    }

    pub(crate) fn list_keys(&self) -> &'static [ListKey] {
        self.list_keys
    }

    pub(crate) fn spoke(&self, version: &str) -> Option<&Spoke> {
        self.spokes.iter().find(|it| it.name == version)
    }
}

impl<H: Hub> KindBuilder<H> {
    /// Adds the version `V`.
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

    /// Builds the kind.
    ///
    /// # Errors
    ///
    /// If two versions have the same name, or if there are fewer than two.
    pub fn build(self) -> Result<Kind, RegistryError> {
        let kind = self.kind;
        let (group, name) = (kind.group.clone(), kind.name.clone());
        let mut seen = BTreeSet::new();
        if let Some(duplicate) = kind.spokes.iter().find(|it| !seen.insert(it.name)) {
            return Err(RegistryError::DuplicateVersion {
                group,
                kind: name,
                version: duplicate.name.to_owned(),
            });
        }
        if kind.spokes.len() < 2 {
            return Err(RegistryError::TooFewVersions { group, kind: name });
        }
        Ok(kind)
    }
}

/// A type-erased version.
#[derive(Clone, Debug)]
pub(crate) struct Spoke {
    name: &'static str,
    lacks: &'static [&'static str],
    list_keys: &'static [ListKey],
    to_hub: fn(&Value) -> Result<Value, VersionError>,
    from_hub: fn(&Value) -> Result<Value, VersionError>,
}

impl Spoke {
    pub(crate) fn name(&self) -> &str {
        self.name
    }

    pub(crate) fn lacks(&self) -> &'static [&'static str] {
        self.lacks
    }

    pub(crate) fn list_keys(&self) -> &'static [ListKey] {
        self.list_keys
    }

    /// Converts the fields of an object of this version to the hub.
    pub(crate) fn to_hub(&self, payload: &Value) -> Result<Value, VersionError> {
        (self.to_hub)(payload)
    }

    /// Converts the hub's fields to this version.
    pub(crate) fn version_from_hub(&self, hub: &Value) -> Result<Value, VersionError> {
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
        // Kubernetes' field paths do not name enum variants, and an unknown segment has no name.
        Segment::Enum { .. } | Segment::Unknown => at,
    })
}
