//! The admission review that the API server sends.
//!
//! The embedded objects stay borrowed from the body: they are decoded once, into the type that the
//! request's kind selects.

use crate::embedded_objects::ReviewParts;
use lockkeeper_policies::rule::Operation;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The supported API version of reviews.
pub(crate) const API_VERSION: &str = "admission.k8s.io/v1";

/// An `AdmissionReview` with a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionReview<'a> {
    #[serde(borrow, default)]
    pub(crate) api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) request: Option<AdmissionRequest<'a>>,
}

/// The request of a review. Every field is optional, so that the response to an incomplete request can
/// name the missing field.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionRequest<'a> {
    #[serde(borrow, default)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) kind: RequestKind<'a>,
    #[serde(borrow, default)]
    pub(crate) sub_resource: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) operation: Cow<'a, str>,
    /// Text that may be invalid JSON.
    #[serde(borrow, default, deserialize_with = "raw_text")]
    pub(crate) object: Option<&'a str>,
    /// Text that may be invalid JSON.
    #[serde(borrow, default, deserialize_with = "raw_text")]
    pub(crate) old_object: Option<&'a str>,
    /// The resource that the request is for: text that is decoded only where callers have to attest its group.
    #[serde(borrow, default, deserialize_with = "raw_text")]
    resource: Option<&'a str>,
}

fn raw_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de str>, D::Error> {
    let raw = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(raw.map(RawValue::get))
}

/// Group, version and kind of the embedded objects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RequestKind<'a> {
    #[serde(borrow)]
    pub(crate) group: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) version: Cow<'a, str>,
    #[serde(borrow, rename = "kind")]
    pub(crate) name: Cow<'a, str>,
}

/// The resource that a request is for.
#[derive(Deserialize)]
struct RequestResource {
    #[serde(default)]
    group: String,
}

impl AdmissionRequest<'_> {
    /// Returns a copy without the embedded objects, which borrows nothing.
    pub(crate) fn without_objects(&self) -> AdmissionRequest<'static> {
        fn owned(text: &str) -> Cow<'static, str> {
            Cow::Owned(text.to_owned())
        }
        AdmissionRequest {
            uid: owned(&self.uid),
            kind: RequestKind {
                group: owned(&self.kind.group),
                version: owned(&self.kind.version),
                name: owned(&self.kind.name),
            },
            sub_resource: self.sub_resource.as_deref().map(owned),
            name: owned(&self.name),
            namespace: owned(&self.namespace),
            operation: owned(&self.operation),
            object: None,
            old_object: None,
            resource: None,
        }
    }

    /// Returns the API group of the resource; `None` if the request names no resource.
    pub(crate) fn resource_group(&self) -> Option<String> {
        let resource: RequestResource = serde_json::from_str(self.resource?).ok()?;
        Some(resource.group)
    }

    /// Returns the operation; `None` for those that no rule applies to, such as CONNECT.
    pub(crate) fn operation(&self) -> Option<Operation> {
        [Operation::Create, Operation::Update, Operation::Delete]
            .into_iter()
            .find(|operation| operation.as_str() == self.operation)
    }
}

/// Why a body gets no review as its response: it has no uid that the response could carry.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdmissionReviewError {
    /// The body is not JSON, or not an AdmissionReview.
    #[error("the body is not an AdmissionReview: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The review has no request.
    #[error("the AdmissionReview has no request; this server supports {API_VERSION}")]
    NoRequest,
    /// The request has no uid.
    #[error("request.uid is missing; without it no response can be matched to the request")]
    NoUid,
}

/// Decodes the review without its embedded objects.
pub(crate) fn decode<'a>(
    parts: &'a ReviewParts<'a>,
) -> Result<(AdmissionReview<'a>, AdmissionRequest<'a>), AdmissionReviewError> {
    let mut review: AdmissionReview<'_> = serde_json::from_slice(&parts.envelope)?;
    let mut request = review
        .request
        .take()
        .ok_or(AdmissionReviewError::NoRequest)?;
    if request.uid.is_empty() {
        return Err(AdmissionReviewError::NoUid);
    }
    request.object = parts.object.or(request.object);
    request.old_object = parts.old_object.or(request.old_object);
    Ok((review, request))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[track_caller]
    fn check_error(body: &[u8], part: &str) {
        let error = decode(&ReviewParts::split(body)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn decode_error_names_missing_part() {
        check_error(b"", "EOF");
        check_error(br#"{"request": {"uid": "#, "EOF");
        check_error(b"[]", "no request");
        check_error(b"{}", "no request");
        check_error(br#"{"request": null}"#, "no request");
        check_error(br#"{"request": {}}"#, "request.uid");
        check_error(
            b"{\"request\": {\"uid\": \"\xff\"}}",
            "not an AdmissionReview",
        );
    }

    #[test]
    fn decode_borrows_objects() {
        let body = br#"{"request": {"uid": "u", "object": {"a": [1, 2]}, "oldObject": null}}"#;
        let parts = ReviewParts::split(body);
        let (_, request) = decode(&parts).unwrap();
        assert_eq!(request.object.unwrap(), r#"{"a": [1, 2]}"#);
        assert!(request.old_object.is_none());
    }

    #[test]
    fn decode_deep_nesting_uses_no_stack() {
        let deep = format!(
            r#"{{"request": {{"uid": "u", "object": {}1{}}}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(decode(&ReviewParts::split(deep.as_bytes())).is_ok());
    }
}
