//! Conversion reviews: objects of one version in, the same objects in another one out.
//!
//! An API server takes all objects or none: with the first that cannot be converted the answer is a failure that names
//! it. What a kind's conversion is, is said elsewhere (`lockkeeper_api::convert`).

use crate::answer::cut;
use crate::unique::{self, Fault};
use lockkeeper_api::convert::{ConvertError, Converters, Named};
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
struct Review<'a> {
    #[serde(borrow, default)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    request: Option<RawRequest<'a>>,
}

/// Everything is optional here, so that the answer to an incomplete request can say what is missing.
#[derive(Debug, Deserialize)]
struct RawRequest<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default, rename = "desiredAPIVersion")]
    desired_api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    objects: Option<Vec<&'a RawValue>>,
}

/// What is asked. The objects stay borrowed from the body until each has its turn.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) uid: Cow<'a, str>,
    /// The version of the objects that come out.
    pub(crate) desired: Cow<'a, str>,
    api_version: Cow<'a, str>,
    objects: Vec<&'a RawValue>,
}

/// A review that cannot be answered as one: there is no uid to answer to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReviewError {
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
pub(crate) fn decode(body: &[u8]) -> Result<Request<'_>, ReviewError> {
    let review: Review<'_> = serde_json::from_slice(body)?;
    let request = review.request.ok_or(ReviewError::NoRequest)?;
    if request.uid.is_empty() {
        return Err(ReviewError::NoUid);
    }
    Ok(Request {
        uid: request.uid,
        desired: request.desired_api_version,
        api_version: review.api_version.unwrap_or_default(),
        objects: request.objects.unwrap_or_default(),
    })
}

/// Why no object of a request is converted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Another version of reviews.
    #[error(
        "apiVersion {0:?} is not spoken here; name v1 in spec.conversion.webhook.conversionReviewVersions"
    )]
    Version(String),
    /// It is not said what is wanted.
    #[error(
        "request.desiredAPIVersion is missing; name a group and version, such as example.com/v1"
    )]
    NoVersion,
    /// An object holds a key twice: nobody can say which one counts.
    #[error("request.objects[{index}] holds the key {key:?} twice; an API server sends each once")]
    Twice {
        /// Which of the objects.
        index: usize,
        /// The key.
        key: String,
    },
    /// What is no value.
    #[error("request.objects[{index}] cannot be read: {source}")]
    Unreadable {
        /// Which of the objects.
        index: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// An object cannot be had in that version.
    #[error("request.objects[{index}]: {source}")]
    Object {
        /// Which of the objects.
        index: usize,
        /// Which it is, and why.
        source: ConvertError,
    },
}

impl Failure {
    /// The object it is about, if it is about one that has a name.
    pub(crate) fn object(&self) -> Option<&Named> {
        match self {
            Self::Object { source, .. } => Some(&source.object),
            _ => None,
        }
    }
}

/// All objects in the version that is wanted.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    all: Vec<Value>,
    /// Of those, whose annotation was none of a conversion: which, and why.
    pub(crate) ignored: Vec<(usize, String)>,
}

impl Request<'_> {
    /// How many objects there are.
    pub(crate) fn count(&self) -> usize {
        self.objects.len()
    }

    /// Converts all, in their order.
    pub(crate) fn convert(&self, converters: &Converters) -> Result<Objects, Failure> {
        if self.api_version != API_VERSION {
            return Err(Failure::Version(self.api_version.clone().into_owned()));
        }
        if self.desired.is_empty() {
            return Err(Failure::NoVersion);
        }
        let mut out = Objects::default();
        for (index, raw) in self.objects.iter().enumerate() {
            let object: Value = unique::from_str(raw.get()).map_err(|fault| match fault {
                Fault::Twice(key) => Failure::Twice { index, key },
                Fault::Json(source) => Failure::Unreadable { index, source },
            })?;
            let converted = converters.convert(object, &self.desired);
            let converted = converted.map_err(|source| Failure::Object { index, source })?;
            out.all.push(converted.object);
            out.ignored
                .extend(converted.ignored.map(|why| (index, why)));
        }
        Ok(out)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    kind: &'static str,
    api_version: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    converted_objects: &'a [Value],
    result: Outcome,
}

/// Kubernetes' `Status`, as much of it as the API server reads.
#[derive(Serialize)]
struct Outcome {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The whole review as JSON, on a line of its own for those who read it by eye.
pub(crate) fn encode(
    uid: &str,
    outcome: Result<&Objects, &Failure>,
) -> Result<Vec<u8>, serde_json::Error> {
    let (objects, message) = match outcome {
        Ok(objects) => (objects.all.as_slice(), None),
        Err(failure) => (&[][..], Some(failure.to_string())),
    };
    line(uid, objects, message)
}

/// The review that says that the time was over.
pub(crate) fn encode_late(uid: &str, waited: Duration) -> Result<Vec<u8>, serde_json::Error> {
    let waited = waited.as_secs_f64();
    let message = format!(
        "not converted within {waited:.1} s, because these objects or others in work are large; try again, with fewer \
         objects at once"
    );
    line(uid, &[], Some(message))
}

fn line(
    uid: &str,
    converted_objects: &[Value],
    message: Option<String>,
) -> Result<Vec<u8>, serde_json::Error> {
    let status = if message.is_none() {
        "Success"
    } else {
        "Failure"
    };
    let message = message.map(|it| cut(it, MESSAGE_LENGTH_MAX));
    let mut line = serde_json::to_vec(&Answered {
        kind: "ConversionReview",
        api_version: API_VERSION,
        response: Response {
            uid,
            converted_objects,
            result: Outcome { status, message },
        },
    })?;
    line.push(b'\n');
    Ok(line)
}
