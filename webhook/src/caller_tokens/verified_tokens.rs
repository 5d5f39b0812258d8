//! Tokens that were verified before, so that a signature is not verified again for each review.

use super::claims::Caller;
use crate::metric_labels::ReviewPath;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The most stored tokens. API servers have one for each webhook; at the bound all are verified again.
const STORED_MAX: usize = 256;

/// The identity of a token at a path. The token itself is a secret, and not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(super) fn new(path: ReviewPath, token: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(path.as_str());
        hash.update([0]);
        hash.update(token);
        Self(hash.finalize().into())
    }
}

/// The callers by token and path.
#[derive(Debug, Default)]
pub(super) struct VerifiedTokens {
    callers: HashMap<TokenDigest, VerifiedToken>,
}

#[derive(Debug)]
struct VerifiedToken {
    caller: Caller,
    /// Seconds since 1970.
    expires_at_s: u64,
}

impl VerifiedTokens {
    /// The caller of a token that is still valid.
    pub(super) fn find(&self, digest: &TokenDigest, now_s: u64) -> Option<Caller> {
        let found = self.callers.get(digest)?;
        (now_s < found.expires_at_s).then(|| found.caller.clone())
    }

    /// Stores the caller of a verified token.
    pub(super) fn insert(&mut self, digest: TokenDigest, caller: Caller, expires_at_s: u64) {
        if self.callers.len() >= STORED_MAX {
            self.callers.clear();
        }
        let verified = VerifiedToken {
            caller,
            expires_at_s,
        };
        self.callers.insert(digest, verified);
    }

    /// Forgets all tokens: their keys may have been revoked.
    pub(super) fn clear(&mut self) {
        self.callers.clear();
    }
}
