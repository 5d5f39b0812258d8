//! The admission review as it is sent.
//!
//! The embedded objects stay borrowed from the body: they are decoded once, straight into their
//! types, when it is known which ones they are.

use lockkeeper_policies::rule::Operation;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The API version of reviews that is spoken.
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

/// The request of a review. Everything is optional here, so that the answer to an incomplete one
/// can still say what is missing.
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
    #[serde(borrow, default)]
    pub(crate) object: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) old_object: Option<&'a RawValue>,
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

impl AdmissionRequest<'_> {
    /// The operation; `None` for those that no rule runs on, such as CONNECT.
    pub(crate) fn operation(&self) -> Option<Operation> {
        [Operation::Create, Operation::Update, Operation::Delete]
            .into_iter()
            .find(|operation| operation.as_str() == self.operation)
    }
}

/// A review that cannot be answered as a review: there is no uid to answer to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdmissionReviewError {
    /// The body is not JSON, or not an object of this shape.
    #[error("the body is not an AdmissionReview: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The review has no request.
    #[error("the AdmissionReview has no request; this server answers requests of {API_VERSION}")]
    NoRequest,
    /// The request has no uid.
    #[error("request.uid is missing; without it no answer can be matched to the request")]
    NoUid,
}

/// Decodes the envelope.
pub(crate) fn decode(
    body: &[u8],
) -> Result<(AdmissionReview<'_>, AdmissionRequest<'_>), AdmissionReviewError> {
    let mut review: AdmissionReview<'_> = serde_json::from_slice(body)?;
    let request = review
        .request
        .take()
        .ok_or(AdmissionReviewError::NoRequest)?;
    if request.uid.is_empty() {
        return Err(AdmissionReviewError::NoUid);
    }
    Ok((review, request))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[track_caller]
    fn refused(body: &[u8], part: &str) {
        let error = decode(body).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn decode_error_names_missing_part() {
        refused(b"", "EOF");
        refused(br#"{"request": {"uid": "#, "EOF");
        refused(b"[]", "no request");
        refused(b"{}", "no request");
        refused(br#"{"request": null}"#, "no request");
        refused(br#"{"request": {}}"#, "request.uid");
        refused(
            b"{\"request\": {\"uid\": \"\xff\"}}",
            "not an AdmissionReview",
        );
    }

    #[test]
    fn decode_borrows_objects() {
        let body = br#"{"request": {"uid": "u", "object": {"a": [1, 2]}, "oldObject": null}}"#;
        let (_, request) = decode(body).unwrap();
        assert_eq!(request.object.unwrap().get(), r#"{"a": [1, 2]}"#);
        assert!(request.old_object.is_none());
    }

    #[test]
    fn decode_deep_nesting_uses_no_stack() {
        let deep = format!(
            r#"{{"request": {{"uid": "u", "object": {}1{}}}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert!(decode(deep.as_bytes()).is_ok());
    }
}
