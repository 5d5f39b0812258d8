//! Converts an object of a registered kind to another version.

use crate::difference::{difference, restore};
use crate::error::{ConvertError, ConvertErrorKind, RegistryError};
use crate::kind::{Kind, Spoke};
use crate::object::ObjectParts;
use crate::preserved_fields::PreservedFields;
use serde_json::Value;
use std::collections::BTreeMap;

/// The kinds that can be converted, by group and kind.
#[derive(Clone, Debug, Default)]
pub struct Converters {
    kinds: BTreeMap<(String, String), Kind>,
}

/// A converted object.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversionResult {
    /// The object in the desired version.
    pub object: Value,
    /// The first annotation under [`PRESERVED_ANNOTATION_PREFIX`](crate::PRESERVED_ANNOTATION_PREFIX) that was ignored, with the
    /// reason; only conversions should write these annotations.
    pub ignored: Option<String>,
}

impl Converters {
    /// Registers these kinds.
    ///
    /// # Errors
    ///
    /// If two kinds have the same group and name.
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Result<Self, RegistryError> {
        let mut all = BTreeMap::new();
        for kind in kinds {
            let key = (kind.group().to_owned(), kind.name().to_owned());
            if let Some(former) = all.insert(key, kind) {
                return Err(RegistryError::DuplicateKind {
                    group: former.group().to_owned(),
                    kind: former.name().to_owned(),
                });
            }
        }
        Ok(Self { kinds: all })
    }

    pub(crate) fn from_kind(kind: &Kind) -> Self {
        let key = (kind.group().to_owned(), kind.name().to_owned());
        Self {
            kinds: BTreeMap::from([(key, kind.clone())]),
        }
    }

    /// Converts the object to `desired`, an API version such as `example.com/v1`. An object that already has this version is
    /// returned unchanged.
    ///
    /// # Errors
    ///
    /// If the kind or one of the versions is not registered, if the object does not match the type of its version, or if the
    /// fields to preserve are too large.
    pub fn convert(&self, object: Value, desired: &str) -> Result<ConversionResult, ConvertError> {
        let parts = ObjectParts::from_object(object, desired)?;
        if parts.api_version == desired {
            return Ok(ConversionResult {
                object: parts.into_object(),
                ignored: None,
            });
        }
        let fail = |kind| parts.error(desired, kind);
        let (group, version) = group_and_version(&parts.api_version)
            .ok_or_else(|| fail(ConvertErrorKind::NoGroup(parts.api_version.clone())))?;
        let (desired_group, desired_version) = group_and_version(desired)
            .ok_or_else(|| fail(ConvertErrorKind::NoGroup(desired.to_owned())))?;
        if group != desired_group {
            return Err(fail(ConvertErrorKind::OtherGroup));
        }
        let key = (group.to_owned(), parts.kind.clone());
        let kind = self
            .kinds
            .get(&key)
            .ok_or_else(|| fail(ConvertErrorKind::UnknownKind))?;
        let spoke = |name| {
            kind.spoke(name).ok_or_else(|| {
                fail(ConvertErrorKind::UnknownVersion {
                    version: name.to_owned(),
                    known: kind.version_names().map(str::to_owned).collect(),
                })
            })
        };
        let (from, to) = (spoke(version)?, spoke(desired_version)?);
        let converted = convert_payload(kind, from, to, &parts).map_err(fail)?;
        Ok(ConversionResult {
            object: parts.with_payload(desired, converted.payload, converted.preserved_annotations),
            ignored: converted.ignored,
        })
    }
}

fn group_and_version(api_version: &str) -> Option<(&str, &str)> {
    let (group, version) = api_version.split_once('/')?;
    (!group.is_empty() && !version.is_empty()).then_some((group, version))
}

/// The parts of an object that a conversion replaces.
struct ConvertedPayload {
    /// The fields beside the metadata, in the target version.
    payload: Value,
    /// The annotations with the fields that the target version cannot represent.
    preserved_annotations: BTreeMap<String, String>,
    /// Why an annotation of the source object was ignored.
    ignored: Option<String>,
}

fn convert_payload(
    kind: &Kind,
    from: &Spoke,
    to: &Spoke,
    parts: &ObjectParts,
) -> Result<ConvertedPayload, ConvertErrorKind> {
    let PreservedFields {
        hub: preserved_hub_fields,
        mut own,
        ignored,
    } = PreservedFields::read(parts.annotations());

    // Restore hub fields that the source version lacks, as long as the source version still shows the same object.
    let plain_hub = from.to_hub(&parts.payload)?;
    let source_view = from.version_from_hub(&plain_hub)?;
    let is_same = |hub: &Value| {
        from.version_from_hub(hub)
            .is_ok_and(|view| view == source_view)
    };
    let full_hub = restore(plain_hub, &preserved_hub_fields, kind.list_keys(), is_same);

    // Restore fields of the target version that the hub lacks, as long as the hub stays the same.
    let plain_target = to.version_from_hub(&full_hub)?;
    let target_hub = to.to_hub(&plain_target)?;
    let is_same = |payload: &Value| to.to_hub(payload).is_ok_and(|hub| hub == target_hub);
    let target_own = own.remove(to.name()).unwrap_or_default();
    let payload = restore(plain_target, &target_own, to.list_keys(), is_same);

    // Preserve fields of the source version that the hub lacks, and hub fields that the target version lacks.
    let source_own = difference(
        &from.version_from_hub(&full_hub)?,
        &parts.payload,
        from.list_keys(),
    );
    // The source object is newer than the preserved fields of its version.
    own.remove(from.name());
    if !source_own.is_empty() {
        own.insert(from.name().to_owned(), source_own);
    }
    let preserved = PreservedFields {
        hub: difference(&target_hub, &full_hub, kind.list_keys()),
        own,
        ignored: None,
    };
    Ok(ConvertedPayload {
        payload,
        preserved_annotations: preserved.write()?,
        ignored,
    })
}
