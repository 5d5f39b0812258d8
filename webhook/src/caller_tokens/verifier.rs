//! Verifies the token of a review.

use super::claims::{Caller, Claims};
use super::key_set::KeySet;
use super::token_error::TokenError;
use super::verified_tokens::{TokenDigest, VerifiedTokens};
use crate::metric_labels::ReviewPath;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Validation, decode, decode_header};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// The longest token, in bytes. One of an API server has about a thousand.
const TOKEN_MAX_BYTES: usize = 16 * 1024;

/// The tolerated difference between the clocks of the API server and of this machine, in seconds, as for the API server.
const CLOCK_LEEWAY_S: u64 = 60;

/// Verifies that reviews carry a token of an API server. Shared by all requests; a token that was verified before costs one hash.
#[derive(Debug)]
pub struct CallerTokens {
    /// Without the path.
    audience: String,
    keys: RwLock<Keys>,
    verified: Mutex<VerifiedTokens>,
    /// A token had an unknown key: the API server may have a new one.
    unknown_key: Notify,
}

/// The keys, or why there are none.
#[derive(Debug)]
enum Keys {
    Unknown(Option<String>),
    Known(Arc<KeySet>),
}

impl CallerTokens {
    /// Tokens are for the audience with the path of the review, such as `https://lockkeeper.lockkeeper-system.svc:443` with
    /// `/validate`. No token is valid before [`Self::set_keys`].
    #[must_use]
    pub fn new(audience: &str) -> Self {
        Self {
            audience: audience.trim_end_matches('/').to_owned(),
            keys: RwLock::new(Keys::Unknown(None)),
            verified: Mutex::default(),
            unknown_key: Notify::new(),
        }
    }

    /// Replaces the keys. Tokens of keys that are gone are not valid any more.
    pub fn set_keys(&self, keys: KeySet) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Keys::Known(Arc::new(keys));
        self.verified().clear();
    }

    /// Records why the keys could not be read. Earlier keys stay valid.
    pub(super) fn set_problem(&self, problem: String) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if let Keys::Unknown(current) = &mut *keys {
            *current = Some(problem);
        }
    }

    /// Why no review can be accepted; `None` if one can.
    pub(crate) fn problem(&self) -> Option<String> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        match &*keys {
            Keys::Known(_) => None,
            Keys::Unknown(None) => {
                Some("the keys of the API server's tokens are not read yet".to_owned())
            }
            Keys::Unknown(Some(why)) => Some(format!(
                "cannot read the keys of the API server's tokens: {why}"
            )),
        }
    }

    /// Waits until a token has a key that is not known.
    pub(super) async fn unknown_key(&self) {
        self.unknown_key.notified().await;
    }

    /// Verifies the token of a review.
    ///
    /// # Errors
    ///
    /// If there is none, or it does not show that an API server sends the review.
    pub(crate) fn verify(
        &self,
        path: ReviewPath,
        headers: &HeaderMap,
    ) -> Result<Caller, TokenError> {
        let audience = || format!("{}/{}", self.audience, path.as_str());
        let Some(token) = bearer_token(headers) else {
            return Err(TokenError::Missing {
                audience: audience(),
            });
        };
        if token.len() > TOKEN_MAX_BYTES {
            return Err(TokenError::Malformed);
        }
        // Before the lock: requests of other threads do not wait for it.
        let digest = TokenDigest::new(path, token);
        if let Some(caller) = self.verified().find(&digest, unix_now_seconds()) {
            return Ok(caller);
        }
        let keys = self.current_keys().ok_or(TokenError::NoKeys)?;
        let claims = self.decode(&keys, &audience(), token)?;
        let expires_at_s = claims.exp;
        let caller = claims.caller(path)?;
        // Those of a set that was replaced meanwhile are not stored.
        let current = self.current_keys();
        let mut verified = self.verified();
        if current.is_some_and(|it| Arc::ptr_eq(&it, &keys)) {
            verified.insert(digest, caller.clone(), expires_at_s);
        }
        Ok(caller)
    }

    fn decode(&self, keys: &KeySet, audience: &str, token: &str) -> Result<Claims, TokenError> {
        let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
        let key = header.kid.and_then(|id| keys.find(&id, header.alg));
        let Some(key) = key else {
            self.unknown_key.notify_one();
            return Err(TokenError::UnknownKey);
        };
        let mut validation = Validation::new(header.alg);
        validation.set_required_spec_claims(&["exp", "nbf", "iss", "aud"]);
        validation.set_audience(&[audience]);
        validation.set_issuer(&[keys.issuer()]);
        validation.validate_nbf = true;
        validation.leeway = CLOCK_LEEWAY_S;
        let decoded = decode::<Claims>(token, key, &validation);
        let decoded = decoded.map_err(|error| token_error(&error, keys, audience))?;
        Ok(decoded.claims)
    }

    fn current_keys(&self) -> Option<Arc<KeySet>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        match &*keys {
            Keys::Known(keys) => Some(Arc::clone(keys)),
            Keys::Unknown(_) => None,
        }
    }

    fn verified(&self) -> std::sync::MutexGuard<'_, VerifiedTokens> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start())
        .filter(|it| !it.is_empty())
}

fn token_error(error: &Error, keys: &KeySet, audience: &str) -> TokenError {
    let audience = audience.to_owned();
    let issuer = keys.issuer().to_owned();
    match error.kind() {
        ErrorKind::InvalidSignature => TokenError::Signature,
        ErrorKind::ExpiredSignature | ErrorKind::ImmatureSignature => TokenError::Time,
        ErrorKind::InvalidIssuer => TokenError::Issuer { issuer },
        ErrorKind::InvalidAudience => TokenError::Audience { audience },
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "iss" => TokenError::Issuer { issuer },
            "aud" => TokenError::Audience { audience },
            _ => TokenError::Time,
        },
        _ => TokenError::Malformed,
    }
}

/// Returns the time in seconds since 1970.
fn unix_now_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs())
}
