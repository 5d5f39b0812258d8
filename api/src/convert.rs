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
mod kept;
mod kind;
mod object;
mod proof;

pub use difference::Keyed;
pub use error::{ConvertError, Fault, Named, RegistryError, Why};
pub use kept::{KEPT, KEPT_MAX_BYTES};
pub use kind::{Hub, Kind, KindBuilder, Version};
pub use proof::{Flaw, Loss, check};

use difference::difference;
use kept::Kept;
use kind::Spoke;
use object::Parts;
use serde_json::Value;
use std::collections::BTreeMap;

/// The kinds that can be converted, by group and kind.
#[derive(Clone, Debug, Default)]
pub struct Converters {
    kinds: BTreeMap<(String, String), Kind>,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
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
                return Err(RegistryError::KindTwice {
                    group: former.group().to_owned(),
                    kind: former.name().to_owned(),
                });
            }
        }
        Ok(Self { kinds: all })
    }

    fn of_one(kind: &Kind) -> Self {
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
    pub fn convert(&self, object: Value, desired: &str) -> Result<Converted, ConvertError> {
        let parts = Parts::of(object, desired)?;
        if parts.api_version == desired {
            return Ok(Converted {
                object: parts.whole(),
                ignored: None,
            });
        }
        let fail = |why| parts.fail(desired, why);
        let (group, version) = group_and_version(&parts.api_version)
            .ok_or_else(|| fail(Why::NoGroup(parts.api_version.clone())))?;
        let (wanted_group, wanted) =
            group_and_version(desired).ok_or_else(|| fail(Why::NoGroup(desired.to_owned())))?;
        if group != wanted_group {
            return Err(fail(Why::OtherGroup));
        }
        let key = (group.to_owned(), parts.kind.clone());
        let kind = self.kinds.get(&key).ok_or_else(|| fail(Why::UnknownKind))?;
        let spoke = |name| {
            kind.spoke(name).ok_or_else(|| {
                fail(Why::UnknownVersion {
                    version: name.to_owned(),
                    known: kind.version_names().map(str::to_owned).collect(),
                })
            })
        };
        let (from, to) = (spoke(version)?, spoke(wanted)?);
        let rewritten = rewrite(kind, from, to, &parts).map_err(fail)?;
        Ok(Converted {
            object: parts.with(desired, rewritten.payload, rewritten.kept),
            ignored: rewritten.ignored,
        })
    }
}

fn group_and_version(api_version: &str) -> Option<(&str, &str)> {
    let (group, version) = api_version.split_once('/')?;
    (!group.is_empty() && !version.is_empty()).then_some((group, version))
}

/// What changes of an object.
struct Rewritten {
    /// Its payload in the other version.
    payload: Value,
    /// The annotations beside it.
    kept: BTreeMap<String, String>,
    /// Why one of the former ones was passed over.
    ignored: Option<String>,
}

fn rewrite(kind: &Kind, from: &Spoke, to: &Spoke, parts: &Parts) -> Result<Rewritten, Why> {
    let Kept {
        hub,
        mut own,
        ignored,
    } = Kept::read(parts.annotations());

    let seen = from.to_hub(&parts.payload)?;
    let shown = from.of_hub(&seen)?;
    let is_same = |hub: &Value| from.of_hub(hub).is_ok_and(|it| it == shown);
    let whole = difference::put_back(seen, &hub, kind.keyed(), is_same);

    let plain = to.of_hub(&whole)?;
    let held = to.to_hub(&plain)?;
    let is_same = |it: &Value| to.to_hub(it).is_ok_and(|it| it == held);
    let mine = own.remove(to.name()).unwrap_or_default();
    let payload = difference::put_back(plain, &mine, to.keyed(), is_same);

    let unheld = difference(&from.of_hub(&whole)?, &parts.payload, from.keyed());
    own.remove(from.name());
    if !unheld.is_empty() {
        own.insert(from.name().to_owned(), unheld);
    }
    let kept = Kept {
        hub: difference(&held, &whole, kind.keyed()),
        own,
        ignored: None,
    };
    Ok(Rewritten {
        payload,
        kept: kept.write()?,
        ignored,
    })
}
