//! Conversion reviews: objects of one version in, the same objects in another one out.
//!
//! An API server takes all objects or none: with the first that cannot be converted the answer is a failure that names
//! it. What a kind's conversion is, is said elsewhere (`lockkeeper_api::convert`).

use crate::admission_response::truncate;
use crate::duplicate_keys::{self, DecodeError};
use lockkeeper_conversion::{ConvertError, Converters, ObjectIdentity};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

/// The API version of reviews that is spoken.
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

/// Everything is optional here, so that the answer to an incomplete request can say what is missing.
#[derive(Debug, Deserialize)]
struct RawConversionRequest<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default, rename = "desiredAPIVersion")]
    desired_api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    objects: Option<Vec<&'a RawValue>>,
}

/// What is asked. The objects stay borrowed from the body until each has its turn.
#[derive(Debug)]
pub(crate) struct ConversionRequest<'a> {
    pub(crate) uid: Cow<'a, str>,
    /// The version of the objects that come out.
    pub(crate) desired_version: Cow<'a, str>,
    api_version: Cow<'a, str>,
    objects: Vec<&'a RawValue>,
}

/// A review that cannot be answered as one: there is no uid to answer to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConversionReviewError {
    /// The body is not JSON, or not an object of this shape.
    #[error("the body is not a ConversionReview: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The review has no request.
    #[error("the ConversionReview has no request; this server answers requests of {API_VERSION}")]
    NoRequest,
    /// The request has no uid.
    #[error("request.uid is missing; without it no answer can be matched to the request")]
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

/// Why no object of a request is converted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConversionFailure {
    /// Another version of reviews.
    #[error(
        "apiVersion {0:?} is not spoken here; name v1 in spec.conversion.webhook.conversionReviewVersions"
    )]
    UnsupportedVersion(String),
    /// It is not said what is wanted.
    #[error(
        "request.desiredAPIVersion is missing; name a group and version, such as example.com/v1"
    )]
    MissingVersion,
    /// An object holds a key twice: nobody can say which one counts.
    #[error("request.objects[{index}] holds the key {key:?} twice; an API server sends each once")]
    DuplicateKey {
        /// Which of the objects.
        index: usize,
        /// The key.
        key: String,
    },
    /// What is no value.
    #[error("request.objects[{index}] cannot be read: {source}")]
    Undecodable {
        /// Which of the objects.
        index: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// An object cannot be had in that version.
    #[error("request.objects[{index}]: {source}")]
    NotConvertible {
        /// Which of the objects.
        index: usize,
        /// Which it is, and why.
        source: ConvertError,
    },
}

impl ConversionFailure {
    /// The object it is about, if it is about one that has a name.
    pub(crate) fn object_identity(&self) -> Option<&ObjectIdentity> {
        match self {
            Self::NotConvertible { source, .. } => Some(&source.object),
            _ => None,
        }
    }
}

/// All objects in the version that is wanted.
#[derive(Debug, Default)]
pub(crate) struct ConvertedObjects {
    objects: Vec<Value>,
    /// Of those, whose annotation was none of a conversion: which, and why.
    pub(crate) ignored_annotations: Vec<(usize, String)>,
}

impl ConversionRequest<'_> {
    /// How many objects there are.
    pub(crate) fn count(&self) -> usize {
        self.objects.len()
    }

    /// Converts all, in their order.
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
                duplicate_keys::from_str(raw.get()).map_err(|fault| match fault {
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
                .extend(converted.ignored.map(|why| (index, why)));
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

/// The whole review as JSON, on a line of its own for those who read it by eye.
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

/// The review that says that the time was over.
pub(crate) fn encode_timeout(uid: &str, waited: Duration) -> Result<Vec<u8>, serde_json::Error> {
    let waited = waited.as_secs_f64();
    let message = format!(
        "not converted within {waited:.1} s, because these objects or others in work are large; try again, with fewer \
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
    let message = message.map(|it| truncate(it, MESSAGE_LENGTH_MAX));
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
