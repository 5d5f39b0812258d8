//! Requests that get an HTTP error instead of a review.

use crate::admission_review::AdmissionReviewError;
use crate::caller_tokens::TokenError;
use crate::conversion_review::ConversionReviewError;
use crate::load_shedding::Overloaded;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// Why a request gets an HTTP error instead of a review.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// Too many requests or bytes are in flight.
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// The token does not show that an API server sends the review.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The content type is not JSON.
    // Without the value: the response and the log never contain bytes of the client.
    #[error("the content type is not application/json; send JSON")]
    ContentType,
    /// The body is larger than the limit.
    #[error("the body is larger than the limit of {0} bytes")]
    TooLarge(usize),
    /// The client sent the body too slowly, or stopped sending.
    #[error("the body did not arrive in time")]
    BodyTimeout,
    /// The connection broke.
    #[error("the body could not be read: {0}")]
    ConnectionBroken(String),
    /// The body has no admission request.
    #[error(transparent)]
    AdmissionReview(#[from] AdmissionReviewError),
    /// The body has no objects to convert.
    #[error(transparent)]
    ConversionReview(#[from] ConversionReviewError),
    /// The response cannot be encoded as JSON.
    #[error("the response could not be encoded: {0}")]
    Encoding(serde_json::Error),
}

impl HttpError {
    /// Returns the cause without any byte that the client sent, for the log.
    pub(super) fn cause(&self) -> &'static str {
        match self {
            Self::Overloaded(_) => "overloaded",
            Self::Token(error) => error.cause(),
            Self::ContentType => "content type",
            Self::TooLarge(_) => "body too large",
            Self::BodyTimeout => "body timeout",
            Self::ConnectionBroken(_) => "connection broken",
            Self::AdmissionReview(_) => "not an AdmissionReview",
            Self::ConversionReview(_) => "not a ConversionReview",
            Self::Encoding(_) => "response not encoded",
        }
    }

    pub(super) fn code(&self) -> StatusCode {
        match self {
            Self::Overloaded(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Token(error) => error.code(),
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::ConnectionBroken(_) | Self::AdmissionReview(_) | Self::ConversionReview(_) => {
                StatusCode::BAD_REQUEST
            }
            Self::Encoding(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let (code, text) = (self.code(), format!("{self}\n"));
        if let Self::Overloaded(overload) = &self {
            let headers = [(RETRY_AFTER, HeaderValue::from(overload.retry_after_seconds))];
            return (code, headers, text).into_response();
        }
        if code == StatusCode::UNAUTHORIZED {
            let headers = [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
            return (code, headers, text).into_response();
        }
        (code, text).into_response()
    }
}
