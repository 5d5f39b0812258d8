//! Conversion reviews: objects of one version in, the same objects in another version out.
//!
//! An API server accepts all objects or none, so the response is a failure that names the first
//! object that cannot be converted. The conversions of a kind are defined by `lockkeeper_api::conversion`.

use crate::admission_response::truncate;
use crate::duplicate_keys::{self, DecodeError};
use lockkeeper_conversion::{ConvertError, Converters, ObjectIdentity};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

/// The supported API version of reviews.
pub(crate) const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// The longest message of a failure, in characters: it may quote an object.
const MESSAGE_LENGTH_MAX: usize = 2_048;

/// A `ConversionReview` with a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConversionReview<'a> {
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    request: Option<RawConversionRequest<'a>>,
}

/// Every field is optional, so that the response to an incomplete request can name the missing field.
#[derive(Debug, Deserialize)]
struct RawConversionRequest<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default, rename = "desiredAPIVersion")]
    desired_api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    objects: Option<Vec<&'a RawValue>>,
}

/// A decoded request. The objects stay borrowed from the body until they are converted.
#[derive(Debug)]
pub(crate) struct ConversionRequest<'a> {
    pub(crate) uid: Cow<'a, str>,
    /// The version to convert to.
    pub(crate) desired_version: Cow<'a, str>,
    api_version: Cow<'a, str>,
    objects: Vec<&'a RawValue>,
}

/// Why a body gets no review as its response: it has no uid that the response could carry.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConversionReviewError {
    /// The body is not JSON, or not a `ConversionReview`.
    #[error("the body is not a ConversionReview: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The review has no request.
    #[error("the ConversionReview has no request; this server supports {API_VERSION}")]
    NoRequest,
    /// The request has no uid.
    #[error("request.uid is missing; without it no response can be matched to the request")]
    NoUid,
}

/// Decodes a review, without its objects.
pub(crate) fn decode(body: &[u8]) -> Result<ConversionRequest<'_>, ConversionReviewError> {
    let review: ConversionReview<'_> = serde_json::from_slice(body)?;
    let request = review.request.ok_or(ConversionReviewError::NoRequest)?;
    if request.uid.is_empty() {
        return Err(ConversionReviewError::NoUid);
    }
    Ok(ConversionRequest {
        uid: request.uid,
        desired_version: request.desired_api_version,
        api_version: review.api_version.unwrap_or_default(),
        objects: request.objects.unwrap_or_default(),
    })
}

/// Why the objects of a request are not converted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConversionFailure {
    /// The version of the review is not supported.
    #[error(
        "unsupported apiVersion {0:?}; list v1 in spec.conversion.webhook.conversionReviewVersions"
    )]
    UnsupportedVersion(String),
    /// The request has no desired version.
    #[error(
        "request.desiredAPIVersion is missing; name a group and version, such as example.com/v1"
    )]
    MissingVersion,
    /// An object has a duplicate key, so its value is undefined.
    #[error(
        "request.objects[{index}] has the duplicate key {key:?}; an API server sends each key once"
    )]
    DuplicateKey {
        /// The index of the object.
        index: usize,
        /// The key.
        key: String,
    },
    /// An object is no valid JSON.
    #[error("request.objects[{index}] cannot be decoded: {source}")]
    Undecodable {
        /// The index of the object.
        index: usize,
        /// The error of the decoder.
        source: serde_json::Error,
    },
    /// An object cannot be converted to the version.
    #[error("request.objects[{index}]: {source}")]
    NotConvertible {
        /// The index of the object.
        index: usize,
        /// The object and the reason.
        source: ConvertError,
    },
}

impl ConversionFailure {
    /// Returns the object that failed, if it has a name.
    pub(crate) fn object_identity(&self) -> Option<&ObjectIdentity> {
        match self {
            Self::NotConvertible { source, .. } => Some(&source.object),
            _ => None,
        }
    }
}

/// The objects in the desired version.
#[derive(Debug, Default)]
pub(crate) struct ConvertedObjects {
    objects: Vec<Value>,
    /// Indexes of the objects with an annotation that was not written by a conversion, and the reasons.
    pub(crate) ignored_annotations: Vec<(usize, String)>,
}

impl ConversionRequest<'_> {
    /// Returns the number of objects.
    pub(crate) fn count(&self) -> usize {
        self.objects.len()
    }

    /// Converts all objects, in their order.
    pub(crate) fn convert(
        &self,
        converters: &Converters,
    ) -> Result<ConvertedObjects, ConversionFailure> {
        if self.api_version != API_VERSION {
            return Err(ConversionFailure::UnsupportedVersion(
                self.api_version.clone().into_owned(),
            ));
        }
        if self.desired_version.is_empty() {
            return Err(ConversionFailure::MissingVersion);
        }
        let mut out = ConvertedObjects::default();
        for (index, raw) in self.objects.iter().enumerate() {
            let object: Value =
                duplicate_keys::from_str(raw.get()).map_err(|error| match error {
                    DecodeError::DuplicateKey(key) => {
                        ConversionFailure::DuplicateKey { index, key }
                    }
                    DecodeError::Json(source) => ConversionFailure::Undecodable { index, source },
                })?;
            let converted = converters.convert(object, &self.desired_version);
            let converted =
                converted.map_err(|source| ConversionFailure::NotConvertible { index, source })?;
            out.objects.push(converted.object);
            out.ignored_annotations
                .extend(converted.ignored.map(|reason| (index, reason)));
        }
        Ok(out)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConversionReviewResponse<'a> {
    kind: &'static str,
    api_version: &'static str,
    response: ConversionResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConversionResponse<'a> {
    uid: &'a str,
    converted_objects: &'a [Value],
    result: ConversionStatus,
}

/// Kubernetes' `Status`, as much of it as the API server reads.
#[derive(Serialize)]
struct ConversionStatus {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Encodes the review as one line of JSON.
pub(crate) fn encode(
    uid: &str,
    outcome: Result<&ConvertedObjects, &ConversionFailure>,
) -> Result<Vec<u8>, serde_json::Error> {
    let (objects, message) = match outcome {
        Ok(objects) => (objects.objects.as_slice(), None),
        Err(failure) => (&[][..], Some(failure.to_string())),
    };
    encode_line(uid, objects, message)
}

/// Encodes the review for objects that were not converted before the deadline.
pub(crate) fn encode_timeout(uid: &str, waited: Duration) -> Result<Vec<u8>, serde_json::Error> {
    let waited = waited.as_secs_f64();
    let message = format!(
        "not converted: timed out after {waited:.1} s, because these objects or others in flight are large; try again, with fewer \
         objects at once"
    );
    encode_line(uid, &[], Some(message))
}

fn encode_line(
    uid: &str,
    converted_objects: &[Value],
    message: Option<String>,
) -> Result<Vec<u8>, serde_json::Error> {
    let status = if message.is_none() {
        "Success"
    } else {
        "Failure"
    };
    let message = message.map(|text| truncate(text, MESSAGE_LENGTH_MAX));
    let mut line = serde_json::to_vec(&ConversionReviewResponse {
        kind: "ConversionReview",
        api_version: API_VERSION,
        response: ConversionResponse {
            uid,
            converted_objects,
            result: ConversionStatus { status, message },
        },
    })?;
    line.push(b'\n');
    Ok(line)
}
