//! Whether a conversion loses something, asked of one object. Property tests ask it of random ones.

use super::difference::{Entry, Step, difference, format_path};
use super::object;
use super::preserved_fields::PreservedFields;
use super::{ConvertError, ConvertErrorKind, Converters, Kind};
use crate::field_path::unescaped;
use serde_json::Value;

/// How a conversion is not what it has to be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RoundTripError {
    /// The object cannot be converted at all.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// It is of no version of the kind.
    #[error("an object of {found} is not of the kind {kind}; give one of its versions")]
    KindMismatch {
        /// The kind.
        kind: String,
        /// What it is of.
        found: String,
    },
    /// The metadata is not what it was.
    #[error("metadata.{field} was changed on the way to {to}; a conversion leaves it alone")]
    MetadataChanged {
        /// The first field that differs.
        field: String,
        /// Where it was converted to.
        to: String,
    },
    /// An object of which a part is left cannot be converted.
    #[error(
        "without {field} a {version} cannot be converted ({reason}): make all fields optional in its type, because an API server \
         has objects converted of which a part is left"
    )]
    RequiredField {
        /// The version.
        version: String,
        /// What it cannot do without.
        field: String,
        /// What it says.
        reason: String,
    },
    /// Something is lost.
    #[error(transparent)]
    LostField(#[from] LostField),
}

/// What a conversion loses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LostField {
    /// The hub does not take all of a version.
    #[error(
        "{field} of {version} is not in the hub: carry it over in `into_hub` and `from_hub` of {version}"
    )]
    NotInHub {
        /// The version.
        version: String,
        /// Its field.
        field: String,
    },
    /// A version does not show what it does not say it lacks.
    #[error(
        "{field} of the hub is lost in {version}, which does not name it in `LACKS`: carry it over, or name it"
    )]
    Undeclared {
        /// The version.
        version: String,
        /// The field of the hub.
        field: String,
    },
    /// The way there and back ends somewhere else.
    #[error("{field} of {version} is another one after the way to {through} and back")]
    ChangedInRoundTrip {
        /// The version.
        version: String,
        /// Its field.
        field: String,
        /// The versions on the way.
        through: String,
    },
}

/// Converts an object to every other version and back, and to every third one in between.
///
/// The object should have been made of the types of its version: what they do not know is kept by itself, and would be
/// told as a loss of the hub.
///
/// # Errors
///
/// When something is lost on one of the ways, or comes to stand in the annotation that the version has a field for.
pub fn check_round_trip(kind: &Kind, object: &Value) -> Result<(), RoundTripError> {
    let converters = Converters::from_kind(kind);
    let convert = |object: &Value, version: &str| -> Result<Value, RoundTripError> {
        let desired = format!("{}/{version}", kind.group());
        Ok(converters.convert(object.clone(), &desired)?.object)
    };
    let from = version_of(kind, object)?;
    for to in kind.version_names() {
        let there = convert(object, to)?;
        check_metadata_unchanged(object, &there, to)?;
        if to == from {
            check_unchanged(kind, from, to, object, &there)?;
            continue;
        }
        check_losses_declared(kind, (from, to), &there)?;
        check_fields_optional(&converters, (from, to), object, &there)?;
        check_unchanged(kind, from, to, object, &convert(&there, from)?)?;
        for third in kind.version_names().filter(|it| ![from, to].contains(it)) {
            let back = convert(&convert(&there, third)?, from)?;
            check_unchanged(kind, from, &format!("{to}, {third}"), object, &back)?;
        }
    }
    Ok(())
}

/// Whether the object can do without each of its fields. While an API server works out what was taken back by an applier
/// (server-side apply), it has what is left converted.
fn check_fields_optional(
    converters: &Converters,
    (from, to): (&str, &str),
    object: &Value,
    there: &Value,
) -> Result<(), RoundTripError> {
    let desired = there.get("apiVersion").and_then(Value::as_str);
    let mut all = Vec::new();
    let fields = object.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| !object::HEAD_FIELDS.contains(&name.as_str())) {
        collect_pointers(value, format!("/{}", escape_pointer_token(name)), &mut all);
    }
    for pointer in all {
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
                ConvertErrorKind::Incompatible(fault) => fault.reason,
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

/// The places of all fields of objects, from here down; those in lists stay, with the key that an item has.
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

/// Whether what is kept in an object is what its version says it lacks.
fn check_losses_declared(
    kind: &Kind,
    (from, to): (&str, &str),
    object: &Value,
) -> Result<(), RoundTripError> {
    let annotations = object.pointer("/metadata/annotations");
    let kept = PreservedFields::read(annotations.and_then(Value::as_object));
    if let Some(entry) = kept.own.get(from).and_then(|it| it.first()) {
        return Err(LostField::NotInHub {
            version: from.to_owned(),
            field: format_path(&entry.at),
        }
        .into());
    }
    let lacks = kind.spoke(to).map_or(&[][..], |it| it.lacks());
    let is_declared = |entry: &Entry| lacks.iter().any(|it| entry.matches_pattern(it));
    match kept.hub.iter().find(|it| !is_declared(it)) {
        None => Ok(()),
        Some(entry) => Err(LostField::Undeclared {
            version: to.to_owned(),
            field: format_path(&entry.at),
        }
        .into()),
    }
}

fn check_metadata_unchanged(before: &Value, after: &Value, to: &str) -> Result<(), RoundTripError> {
    let of = |object: &Value| {
        without_preserved_annotations(object)
            .get("metadata")
            .cloned()
            .unwrap_or_default()
    };
    match difference(&of(before), &of(after), &[]).first() {
        None => Ok(()),
        Some(entry) => Err(RoundTripError::MetadataChanged {
            field: format_path(&entry.at),
            to: to.to_owned(),
        }),
    }
}

/// Whether this is the object again. What its annotation kept may be less by now: what was no longer true is gone.
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

/// The object without what is kept in it.
fn without_preserved_annotations(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        object::remove_preserved_annotations(metadata);
    }
    object
}
