//! Objects of a kind with several versions: from one version to another and back, with nothing lost.
//!
//! A kind has a [`Hub`], a type that holds all that any of its versions can say, and each [`Version`] is converted to the
//! hub and from it. What the version lacks that comes out (of the hub, or of what its type does not know) is kept in
//! annotations ([`KEPT`]), and put back by the conversion that goes the other way. Who writes a version writes two functions
//! that may lose what the version has no field for; that nothing is lost in the end is this module's business.
//!
//! - What was kept is put back only where the object still says what it said then: a field that was changed in the other
//!   version since, or removed with what it stood in, stays as it was left. The newer truth wins.
//! - What is put back changes nothing that the version it was kept in says by itself. So no annotation, whoever wrote it,
//!   hides or changes what people see.
//! - Of the metadata nothing but those annotations is touched: an API server takes no other change.
//!
//! [`check`] says of an object in which way its conversion loses something; property tests feed it with random ones.

mod difference;
mod error;
mod kind;
mod object;
mod preserved_fields;
mod round_trip;

pub use difference::ListKey;
pub use error::{ConvertError, ConvertErrorKind, ObjectIdentity, RegistryError, VersionError};
pub use kind::{Hub, Kind, KindBuilder, Version};
pub use preserved_fields::{PRESERVED_ANNOTATION_PREFIX, PRESERVED_MAX_BYTES};
pub use round_trip::{LostField, RoundTripError, check_round_trip};

use difference::difference;
use kind::Spoke;
use object::ObjectParts;
use preserved_fields::PreservedFields;
use serde_json::Value;
use std::collections::BTreeMap;

/// The kinds that can be converted, by group and kind.
#[derive(Clone, Debug, Default)]
pub struct Converters {
    kinds: BTreeMap<(String, String), Kind>,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversionResult {
    /// The object in the version that was asked for.
    pub object: Value,
    /// Which of the annotations [`KEPT`] was passed over, and why, if one was: nobody but a conversion should write them.
    pub ignored: Option<String>,
}

impl Converters {
    /// These kinds.
    ///
    /// # Errors
    ///
    /// When two of them have the same group and name.
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

    fn from_kind(kind: &Kind) -> Self {
        let key = (kind.group().to_owned(), kind.name().to_owned());
        Self {
            kinds: BTreeMap::from([(key, kind.clone())]),
        }
    }

    /// The object as `desired` has it, an API version such as `example.com/v1`. One that has it already comes back as it is.
    ///
    /// # Errors
    ///
    /// When the kind or a version of it is not known here, when the object does not fit its version, or when what would
    /// have to be kept is too large.
    pub fn convert(&self, object: Value, desired: &str) -> Result<ConversionResult, ConvertError> {
        let parts = ObjectParts::from_object(object, desired)?;
        if parts.api_version == desired {
            return Ok(ConversionResult {
                object: parts.into_object(),
                ignored: None,
            });
        }
        let fail = |why| parts.error(desired, why);
        let (group, version) = group_and_version(&parts.api_version)
            .ok_or_else(|| fail(ConvertErrorKind::NoGroup(parts.api_version.clone())))?;
        let (wanted_group, wanted) = group_and_version(desired)
            .ok_or_else(|| fail(ConvertErrorKind::NoGroup(desired.to_owned())))?;
        if group != wanted_group {
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
        let (from, to) = (spoke(version)?, spoke(wanted)?);
        let rewritten = convert_payload(kind, from, to, &parts).map_err(fail)?;
        Ok(ConversionResult {
            object: parts.with_payload(desired, rewritten.payload, rewritten.preserved_annotations),
            ignored: rewritten.ignored,
        })
    }
}

fn group_and_version(api_version: &str) -> Option<(&str, &str)> {
    let (group, version) = api_version.split_once('/')?;
    (!group.is_empty() && !version.is_empty()).then_some((group, version))
}

/// What changes of an object.
struct ConvertedPayload {
    /// Its payload in the other version.
    payload: Value,
    /// The annotations beside it.
    preserved_annotations: BTreeMap<String, String>,
    /// Why one of the former ones was passed over.
    ignored: Option<String>,
}

fn convert_payload(
    kind: &Kind,
    from: &Spoke,
    to: &Spoke,
    parts: &ObjectParts,
) -> Result<ConvertedPayload, ConvertErrorKind> {
    let PreservedFields {
        hub,
        mut own,
        ignored,
    } = PreservedFields::read(parts.annotations());

    let seen = from.to_hub(&parts.payload)?;
    let shown = from.version_from_hub(&seen)?;
    let is_same = |hub: &Value| from.version_from_hub(hub).is_ok_and(|it| it == shown);
    let whole = difference::restore(seen, &hub, kind.list_keys(), is_same);

    let plain = to.version_from_hub(&whole)?;
    let held = to.to_hub(&plain)?;
    let is_same = |it: &Value| to.to_hub(it).is_ok_and(|it| it == held);
    let mine = own.remove(to.name()).unwrap_or_default();
    let payload = difference::restore(plain, &mine, to.list_keys(), is_same);

    let unheld = difference(
        &from.version_from_hub(&whole)?,
        &parts.payload,
        from.list_keys(),
    );
    own.remove(from.name());
    if !unheld.is_empty() {
        own.insert(from.name().to_owned(), unheld);
    }
    let kept = PreservedFields {
        hub: difference(&held, &whole, kind.list_keys()),
        own,
        ignored: None,
    };
    Ok(ConvertedPayload {
        payload,
        preserved_annotations: kept.write()?,
        ignored,
    })
}
