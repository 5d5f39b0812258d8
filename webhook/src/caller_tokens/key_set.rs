//! The keys of the cluster's tokens.

use jsonwebtoken::jwk::{Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use std::collections::BTreeMap;
use std::fmt;

/// The most keys of a set; further ones are ignored. A cluster has one, and two during a rotation.
const KEYS_MAX: usize = 64;

/// The public keys of an issuer, by key id.
#[derive(Clone)]
pub struct KeySet {
    issuer: String,
    keys: BTreeMap<String, PublicKey>,
}

/// A key with its only algorithm.
#[derive(Clone)]
struct PublicKey {
    algorithm: Algorithm,
    key: DecodingKey,
}

/// Why a document holds no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeySetError {
    /// The document is no key set.
    #[error("the keys of the API server are no JSON Web Key Set: {0}")]
    Malformed(#[from] serde_json::Error),
    /// No key can be used.
    #[error(
        "the API server has no key that can be used; a key needs a key id and the algorithm RS256, RS384, RS512, ES256 or ES384"
    )]
    NoKey,
}

impl KeySet {
    /// Reads a JSON Web Key Set (RFC 7517), as `/openid/v1/jwks` of an API server returns it. Keys without id, for encryption,
    /// and of other algorithms than RS256, RS384, RS512, ES256 and ES384 are left out; symmetric ones would let any reader sign.
    ///
    /// # Errors
    ///
    /// If the text is no key set, or has no key that can be used.
    pub fn from_json(issuer: String, json: &str) -> Result<Self, KeySetError> {
        let set: JwkSet = serde_json::from_str(json)?;
        let keys = set.keys.iter().filter_map(usable_key);
        let keys: BTreeMap<String, PublicKey> = keys.take(KEYS_MAX).collect();
        if keys.is_empty() {
            return Err(KeySetError::NoKey);
        }
        Ok(Self { issuer, keys })
    }

    /// The issuer of the tokens.
    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The key of an id, if it is for the algorithm.
    pub(super) fn find(&self, id: &str, algorithm: Algorithm) -> Option<&DecodingKey> {
        let found = self.keys.get(id)?;
        (found.algorithm == algorithm).then_some(&found.key)
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&String> = self.keys.keys().collect();
        f.debug_struct("KeySet")
            .field("issuer", &self.issuer)
            .field("keys", &ids)
            .finish()
    }
}

fn usable_key(key: &Jwk) -> Option<(String, PublicKey)> {
    let id = key.common.key_id.clone()?;
    let algorithm = match key.common.key_algorithm? {
        KeyAlgorithm::RS256 => Algorithm::RS256,
        KeyAlgorithm::RS384 => Algorithm::RS384,
        KeyAlgorithm::RS512 => Algorithm::RS512,
        KeyAlgorithm::ES256 => Algorithm::ES256,
        KeyAlgorithm::ES384 => Algorithm::ES384,
        _ => return None,
    };
    if !matches!(
        key.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    ) {
        return None;
    }
    let key = DecodingKey::from_jwk(key).ok()?;
    (key.family() == algorithm.family()).then_some((id, PublicKey { algorithm, key }))
}
