//! Checks that converting an object to every other version and back loses nothing.

use crate::converters::Converters;
use crate::difference::{Entry, Step, difference, format_path};
use crate::error::{ConvertError, ConvertErrorKind};
use crate::kind::Kind;
use crate::object;
use crate::preserved_fields::PreservedFields;
use lockkeeper_api::field_path::unescaped;
use serde_json::Value;

/// A defect of a conversion, found by [`check_round_trip`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RoundTripError {
    /// The object cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The object has another kind, or an unregistered version.
    #[error("an object with apiVersion {found} is not a {kind}; give one of its versions")]
    KindMismatch {
        /// The kind that is checked.
        kind: String,
        /// The API version of the object.
        found: String,
    },
    /// The conversion changed the metadata.
    #[error(
        "metadata.{field} was changed by the conversion to {to}; conversions must not change metadata"
    )]
    MetadataChanged {
        /// The first field that differs.
        field: String,
        /// The target version.
        to: String,
    },
    /// A partial object cannot be converted.
    #[error(
        "a {version} object without {field} cannot be converted ({reason}): make all fields of its type optional, because the \
         API server also converts partial objects (server-side apply)"
    )]
    RequiredField {
        /// The version.
        version: String,
        /// The required field.
        field: String,
        /// The error of the conversion without it.
        reason: String,
    },
    /// A field is lost.
    #[error(transparent)]
    LostField(#[from] LostField),
}

/// A field that a conversion loses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LostField {
    /// A field of a version is missing in the hub.
    #[error(
        "{field} of {version} is not in the hub: convert it in `into_hub` and `from_hub` of {version}"
    )]
    NotInHub {
        /// The version.
        version: String,
        /// The field.
        field: String,
    },
    /// A version drops a hub field that its `LACKS` does not list.
    #[error(
        "{field} of the hub is lost in {version}, which does not list it in `LACKS`: convert it, or list it"
    )]
    Undeclared {
        /// The version.
        version: String,
        /// The field of the hub.
        field: String,
    },
    /// A field has another value after the round trip.
    #[error("{field} of {version} differs after the round trip through {through}")]
    ChangedInRoundTrip {
        /// The version.
        version: String,
        /// The field.
        field: String,
        /// The versions in between.
        through: String,
    },
}

/// Converts an object to every other version and back, directly and through every third version.
///
/// Build the object from the type of its version: a field that the type does not define is preserved as is, and would be
/// reported as missing in the hub.
///
/// # Errors
///
/// If a conversion loses a field, or preserves one in an annotation although the version has a field for it.
pub fn check_round_trip(kind: &Kind, object: &Value) -> Result<(), RoundTripError> {
    let converters = Converters::from_kind(kind);
    let convert = |object: &Value, version: &str| -> Result<Value, RoundTripError> {
        let desired = format!("{}/{version}", kind.group());
        Ok(converters.convert(object.clone(), &desired)?.object)
    };
    let from = version_of(kind, object)?;
    for to in kind.version_names() {
        let converted = convert(object, to)?;
        check_metadata_unchanged(object, &converted, to)?;
        // A conversion to its own version must return the object unchanged, too.
        if to == from {
            check_unchanged(kind, from, to, object, &converted)?;
            continue;
        }
        check_losses_declared(kind, (from, to), &converted)?;
        check_fields_optional(&converters, (from, to), object, &converted)?;
        check_unchanged(kind, from, to, object, &convert(&converted, from)?)?;
        // The annotations of the first conversion must survive a version that lacks other fields.
        for third in kind.version_names().filter(|it| ![from, to].contains(it)) {
            let back = convert(&convert(&converted, third)?, from)?;
            check_unchanged(kind, from, &format!("{to}, {third}"), object, &back)?;
        }
    }
    Ok(())
}

/// Checks that the object converts without each of its fields: for server-side apply, the API server converts the object
/// without the fields that an applier has dropped.
fn check_fields_optional(
    converters: &Converters,
    (from, to): (&str, &str),
    object: &Value,
    target: &Value,
) -> Result<(), RoundTripError> {
    let desired = target.get("apiVersion").and_then(Value::as_str);
    let mut pointers = Vec::new();
    let fields = object.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| !object::HEAD_FIELDS.contains(&name.as_str())) {
        collect_pointers(
            value,
            format!("/{}", escape_pointer_token(name)),
            &mut pointers,
        );
    }
    for pointer in pointers {
        let mut part = object.clone();
        let Some((parent, last)) = pointer.rsplit_once('/') else {
            continue;
        };
        if let Some(fields) = part.pointer_mut(parent).and_then(Value::as_object_mut) {
            fields.remove(&unescaped(last));
        }
        let converted = converters.convert(part, desired.unwrap_or(to));
        if let Err(error) = converted {
            let reason = match error.kind {
                ConvertErrorKind::Incompatible(error) => error.reason,
                other => other.to_string(),
            };
            let steps = pointer
                .split('/')
                .skip(1)
                .map(|it| Step::Field(unescaped(it)));
            return Err(RoundTripError::RequiredField {
                version: from.to_owned(),
                field: format_path(&steps.collect::<Vec<_>>()),
                reason,
            });
        }
    }
    Ok(())
}

/// Collects the JSON pointers of `value` and of all fields of objects below it. Lists are not entered: the keys of their items
/// are not optional.
fn collect_pointers(value: &Value, at: String, out: &mut Vec<String>) {
    for (name, below) in value.as_object().into_iter().flatten() {
        collect_pointers(below, format!("{at}/{}", escape_pointer_token(name)), out);
    }
    out.push(at);
}

fn escape_pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn version_of<'a>(kind: &'a Kind, object: &Value) -> Result<&'a str, RoundTripError> {
    let found = object.get("apiVersion").and_then(Value::as_str);
    let version = found.and_then(|it| it.strip_prefix(kind.group())?.strip_prefix('/'));
    let known = version.and_then(|it| kind.version_names().find(|name| *name == it));
    known.ok_or_else(|| RoundTripError::KindMismatch {
        kind: format!("{}.{}", kind.name(), kind.group()),
        found: found.unwrap_or_default().to_owned(),
    })
}

/// Checks that every preserved field is listed in `LACKS` of the object's version.
fn check_losses_declared(
    kind: &Kind,
    (from, to): (&str, &str),
    object: &Value,
) -> Result<(), RoundTripError> {
    let annotations = object.pointer("/metadata/annotations");
    let preserved = PreservedFields::read(annotations.and_then(Value::as_object));
    // An entry of the version itself is a field that `into_hub` has dropped.
    if let Some(entry) = preserved.own.get(from).and_then(|it| it.first()) {
        return Err(LostField::NotInHub {
            version: from.to_owned(),
            field: format_path(&entry.at),
        }
        .into());
    }
    let lacks = kind.spoke(to).map_or(&[][..], |it| it.lacks());
    let is_declared = |entry: &Entry| lacks.iter().any(|it| entry.matches_pattern(it));
    match preserved.hub.iter().find(|it| !is_declared(it)) {
        None => Ok(()),
        Some(entry) => Err(LostField::Undeclared {
            version: to.to_owned(),
            field: format_path(&entry.at),
        }
        .into()),
    }
}

fn check_metadata_unchanged(before: &Value, after: &Value, to: &str) -> Result<(), RoundTripError> {
    let metadata = |object: &Value| {
        without_preserved_annotations(object)
            .get("metadata")
            .cloned()
            .unwrap_or_default()
    };
    match difference(&metadata(before), &metadata(after), &[]).first() {
        None => Ok(()),
        Some(entry) => Err(RoundTripError::MetadataChanged {
            field: format_path(&entry.at),
            to: to.to_owned(),
        }),
    }
}

/// Checks that the object is unchanged. Its preserved annotations may differ: stale entries are dropped.
fn check_unchanged(
    kind: &Kind,
    version: &str,
    through: &str,
    before: &Value,
    after: &Value,
) -> Result<(), RoundTripError> {
    let keyed = kind.spoke(version).map_or(&[][..], |it| it.list_keys());
    let difference = difference(
        &without_preserved_annotations(before),
        &without_preserved_annotations(after),
        keyed,
    );
    match difference.first() {
        None => Ok(()),
        Some(entry) => Err(LostField::ChangedInRoundTrip {
            version: version.to_owned(),
            field: format_path(&entry.at),
            through: through.to_owned(),
        }
        .into()),
    }
}

/// The object without the annotations of conversions.
fn without_preserved_annotations(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        object::remove_preserved_annotations(metadata);
    }
    object
}
