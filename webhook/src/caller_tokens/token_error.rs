//! Why a review is rejected for its token.

use axum::http::StatusCode;

/// Why a review is rejected for its token. The texts contain nothing of the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    /// The request has no bearer token.
    #[error(
        "the review has no bearer token; it needs one of KEP-6060 for the audience {audience} (webhook.tokenAudience)"
    )]
    Missing {
        /// The audience of this path.
        audience: String,
    },
    /// The keys of the API server are not known yet.
    #[error("the keys of the API server's tokens are not read yet; retry later")]
    NoKeys,
    /// The token is longer than any of an API server, or no token.
    #[error("the bearer token is no JSON Web Token; send one of the API server's TokenRequest API")]
    Malformed,
    /// No current key has the token's key id and algorithm.
    #[error("the token is not signed with a current key of the API server; request a new one")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the token's signature is wrong; request a new one")]
    Signature,
    /// The token has expired, or is not valid yet.
    #[error("the token is not valid now; request a new one, and check the clocks")]
    Time,
    /// Another issuer.
    #[error("the token is of another issuer than {issuer}; see webhook.tokenIssuer")]
    Issuer {
        /// The accepted issuer.
        issuer: String,
    },
    /// Another audience.
    #[error("the token is not for the audience {audience}; see webhook.tokenAudience")]
    Audience {
        /// The audience of this path.
        audience: String,
    },
    /// The token belongs to a pod, or to no object.
    #[error(
        "the token is not bound to a {kind}; only API servers with such a token may send reviews"
    )]
    NotBound {
        /// The kind of webhook configuration that is served at this path.
        kind: &'static str,
    },
    /// The token attests another API group than that of the review.
    #[error("the token does not attest admissionReviewAPIGroups for the API group of the review")]
    Group,
}

impl TokenError {
    /// The status code of the response.
    pub(crate) const fn code(&self) -> StatusCode {
        match self {
            Self::NoKeys => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotBound { .. } | Self::Group => StatusCode::FORBIDDEN,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// The cause without any byte of the client, for the log.
    pub(crate) const fn cause(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "no token",
            Self::NoKeys => "keys of tokens not read yet",
            Self::Malformed => "malformed token",
            Self::UnknownKey => "token of an unknown key",
            Self::Signature => "wrong signature of the token",
            Self::Time => "token not valid now",
            Self::Issuer { .. } => "token of another issuer",
            Self::Audience { .. } => "token for another audience",
            Self::NotBound { .. } => "token without a webhook configuration",
            Self::Group => "token for another API group",
        }
    }
}
