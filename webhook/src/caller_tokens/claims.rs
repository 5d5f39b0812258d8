//! The claims of a token.

use super::token_error::TokenError;
use crate::metric_labels::ReviewPath;
use serde::Deserialize;

/// The attested group of an API server that may send reviews of all groups.
const ALL_GROUPS: &str = "*";

/// The claims that are read besides the registered ones (RFC 7519), which the decoder checks.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    /// Seconds since 1970. The decoder requires it.
    #[serde(default)]
    pub(super) exp: u64,
    #[serde(rename = "kubernetes.io", default)]
    kubernetes: KubernetesClaims,
}

/// The claims of Kubernetes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KubernetesClaims {
    #[serde(rename = "validatingwebhookconfiguration")]
    validating: Option<ObjectRef>,
    #[serde(rename = "mutatingwebhookconfiguration")]
    mutating: Option<ObjectRef>,
    attestations: Attestations,
}

/// The object that a token is bound to. The API server compares its uid; here its presence counts.
#[derive(Debug, Deserialize)]
struct ObjectRef {}

/// What the cluster attests.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attestations {
    #[serde(rename = "admissionReviewAPIGroups")]
    groups: Vec<String>,
}

impl Claims {
    /// The caller, if the token is bound to a webhook configuration of the kind that is served at a path.
    ///
    /// # Errors
    ///
    /// If it is bound to something else, or attests nothing.
    pub(super) fn caller(self, path: ReviewPath) -> Result<Caller, TokenError> {
        let claims = self.kubernetes;
        let (kind, bound) = match path {
            ReviewPath::Mutate => ("MutatingWebhookConfiguration", claims.mutating),
            _ => ("ValidatingWebhookConfiguration", claims.validating),
        };
        if bound.is_none() {
            return Err(TokenError::NotBound { kind });
        }
        // The issuer attests exactly one.
        match <[String; 1]>::try_from(claims.attestations.groups) {
            Ok([group]) if !group.is_empty() => Ok(Caller { group }),
            _ => Err(TokenError::Group),
        }
    }
}

/// A caller whose token is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The API group of its reviews, or [`ALL_GROUPS`].
    group: String,
}

impl Caller {
    /// Checks that it may send a review of an API group.
    ///
    /// # Errors
    ///
    /// If its token attests another group.
    pub(crate) fn check_group(&self, group: Option<&str>) -> Result<(), TokenError> {
        if self.group == ALL_GROUPS || group == Some(self.group.as_str()) {
            return Ok(());
        }
        Err(TokenError::Group)
    }
}
