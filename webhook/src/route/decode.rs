//! Decodes the objects of a request into their type.

use super::typed_object::typed_object;
use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;
use crate::duplicate_keys::DecodeError;
use crate::object_identity::ObjectIdentity;
use crate::pod_template_cache::PodTemplateCache;
use lockkeeper_api::field_path::FieldPath;
use lockkeeper_policies::decode_error::reason;
use lockkeeper_policies::engine::{ReviewSubject, Verdict};
use lockkeeper_policies::finding::{Finding, quoted};
use lockkeeper_policies::rule::{Change, Operation};
use lockkeeper_policies::validated_kind::ValidatedKind;
use serde_json::Value;

/// The decoded objects of a request.
pub(super) enum DecodedObjects<T> {
    Create(T),
    Update { old: T, new: T },
    Delete(T),
}

impl<T> DecodedObjects<T> {
    pub(super) fn subject(&self) -> ReviewSubject<'_, T> {
        match self {
            Self::Create(object) => ReviewSubject::Create(object),
            Self::Update { old, new } => ReviewSubject::Update(Change { old, new }),
            Self::Delete(object) => ReviewSubject::Delete(object),
        }
    }
}

impl<T: ValidatedKind> DecodedObjects<T> {
    /// Returns the identity for messages, with the name of the object, or its `generateName`.
    pub(super) fn identity<'a>(&'a self, request: &'a AdmissionRequest<'a>) -> ObjectIdentity<'a> {
        let object = match self {
            Self::Create(object) | Self::Delete(object) => object,
            Self::Update { new, .. } => new,
        };
        let metadata = object.meta();
        let name = metadata
            .name
            .as_deref()
            .or(metadata.generate_name.as_deref());
        ObjectIdentity {
            name: name.unwrap_or(&request.name),
            ..request_identity(request)
        }
    }
}

/// Decodes the objects that the operation has. `Err` is the response for a request that is not evaluated.
pub(super) fn decode<T: ValidatedKind>(
    request: &AdmissionRequest<'_>,
    operation: Operation,
    templates: &PodTemplateCache,
) -> Result<DecodedObjects<T>, Box<AdmissionResponse>> {
    let missing = |field: &str| missing_object(request, operation, field);
    if operation == Operation::Delete {
        let raw = request.old_object.ok_or_else(|| missing("oldObject"))?;
        return match decode_typed(raw, templates) {
            Ok(object) => Ok(DecodedObjects::Delete(object)),
            Err(ObjectDecodeError::DuplicateKey(key)) => {
                Err(duplicate_key(request, "oldObject", &key))
            }
            Err(ObjectDecodeError::InvalidJson(error)) => {
                Err(invalid_json(request, "oldObject", &error))
            }
            // Every stored object may be deleted, so rules run only if it decodes.
            Err(ObjectDecodeError::TypeMismatch(finding)) => {
                let mut response = AdmissionResponse::allow(&request.uid);
                response.warn(format!(
                    "not checked: the stored object does not decode: {finding}"
                ));
                Err(Box::new(response))
            }
        };
    }
    let raw = request.object.ok_or_else(|| missing("object"))?;
    let new = match decode_typed::<T>(raw, templates) {
        Ok(new) => new,
        Err(ObjectDecodeError::DuplicateKey(key)) => {
            return Err(duplicate_key(request, "object", &key));
        }
        Err(ObjectDecodeError::InvalidJson(error)) => {
            return Err(invalid_json(request, "object", &error));
        }
        Err(ObjectDecodeError::TypeMismatch(finding)) => {
            return Err(Box::new(type_error::<T>(request, *finding, templates)));
        }
    };
    if operation == Operation::Create {
        return Ok(DecodedObjects::Create(new));
    }
    let raw = request.old_object.ok_or_else(|| missing("oldObject"))?;
    match decode_typed(raw, templates) {
        Ok(old) => Ok(DecodedObjects::Update { old, new }),
        Err(ObjectDecodeError::DuplicateKey(key)) => Err(duplicate_key(request, "oldObject", &key)),
        Err(ObjectDecodeError::InvalidJson(error)) => {
            Err(invalid_json(request, "oldObject", &error))
        }
        // Without the stored object there is no ratcheting: the new one is validated like a created one.
        Err(ObjectDecodeError::TypeMismatch(_)) => Ok(DecodedObjects::Create(new)),
    }
}

/// Rejects a request without a required object.
pub(super) fn missing_object(
    request: &AdmissionRequest<'_>,
    operation: Operation,
    field: &str,
) -> Box<AdmissionResponse> {
    let message = format!(
        "request.{field} is null, which {} must not have",
        operation.as_str()
    );
    Box::new(AdmissionResponse::bad_request(&request.uid, &message))
}

/// Rejects a request with an object that has a duplicate key, since it is undefined which value would be
/// stored.
pub(super) fn duplicate_key(
    request: &AdmissionRequest<'_>,
    field: &str,
    key: &str,
) -> Box<AdmissionResponse> {
    let key = quoted(key);
    let message =
        format!("request.{field} has the duplicate key {key}; an API server sends each key once");
    Box::new(AdmissionResponse::bad_request(&request.uid, &message))
}

/// Rejects a request with an object that is not JSON.
fn invalid_json(
    request: &AdmissionRequest<'_>,
    field: &str,
    error: &serde_json::Error,
) -> Box<AdmissionResponse> {
    let message = format!("request.{field} is not valid JSON: {error}");
    Box::new(AdmissionResponse::bad_request(&request.uid, &message))
}

/// Rejects an object that does not decode, unless the stored one has the same error or the kind is of another
/// project.
fn type_error<T: ValidatedKind>(
    request: &AdmissionRequest<'_>,
    finding: Finding,
    templates: &PodTemplateCache,
) -> AdmissionResponse {
    let stored = request
        .old_object
        .and_then(|raw| decode_typed::<T>(raw, templates).err());
    let is_pre_existing =
        matches!(stored, Some(ObjectDecodeError::TypeMismatch(stored)) if *stored == finding);
    // The update did not cause a pre-existing error, and must be able to remove a finalizer. A kind
    // of another project may have a newer schema than this build.
    if is_pre_existing || !T::OWN {
        let mut response = AdmissionResponse::allow(&request.uid);
        response.warn(format!("not checked: {finding}"));
        return response;
    }
    let verdict = Verdict {
        denials: vec![finding],
        ..Verdict::default()
    };
    AdmissionResponse::from_verdict(&request.uid, request_identity(request), &verdict)
}

/// Why an object does not decode into its type.
enum ObjectDecodeError {
    /// It has this duplicate key.
    DuplicateKey(String),
    /// It is not JSON.
    InvalidJson(serde_json::Error),
    /// A field has the wrong type.
    TypeMismatch(Box<Finding>),
}

/// Decodes an object.
fn decode_typed<T: ValidatedKind>(
    raw: &str,
    templates: &PodTemplateCache,
) -> Result<T, ObjectDecodeError> {
    typed_object(raw, templates).map_err(|error| match error {
        DecodeError::DuplicateKey(key) => ObjectDecodeError::DuplicateKey(key),
        DecodeError::Json(error) if error.is_syntax() || error.is_eof() => {
            ObjectDecodeError::InvalidJson(error)
        }
        DecodeError::Json(error) => {
            ObjectDecodeError::TypeMismatch(Box::new(locate_type_error::<T>(raw, &error)))
        }
    })
}

/// Returns the finding for a type error, with its path.
fn locate_type_error<T: ValidatedKind>(raw: &str, first: &serde_json::Error) -> Finding {
    let object = serde_json::from_str::<Value>(raw).ok();
    // A value has no duplicate keys, so an error about them has no path.
    let finding = object.and_then(|object| T::type_mismatch(&object));
    finding.unwrap_or_else(|| Finding::decode_error(FieldPath::default(), None, &reason(first)))
}

pub(super) fn request_identity<'a>(request: &'a AdmissionRequest<'a>) -> ObjectIdentity<'a> {
    ObjectIdentity {
        group: &request.kind.group,
        kind: &request.kind.name,
        name: &request.name,
    }
}
