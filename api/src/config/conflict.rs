//! Conflicts between settings that are each in range.

/// Two settings that are each in range but conflict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigConflict {
    /// One exceeds its bound.
    #[error("{0}; raise the second or lower the first")]
    TooLarge(BoundCheck),
    /// Only one of them may be set.
    #[error("{key} and {other_key} are both set: {why}; remove one of them")]
    MutuallyExclusive {
        /// One key.
        key: &'static str,
        /// The other key.
        other_key: &'static str,
        /// The reason.
        why: &'static str,
    },
}

/// Two numbers, the second of which bounds the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}, and {bound_key} is {bound}: {why}")]
pub struct BoundCheck {
    /// The key that must not exceed the other.
    pub key: &'static str,
    /// Its value.
    pub value: u64,
    /// The key that bounds it.
    pub bound_key: &'static str,
    /// The value of the bound.
    pub bound: u64,
    /// The consequence of exceeding it.
    pub why: &'static str,
}

impl ConfigConflict {
    /// Both keys.
    #[must_use]
    pub fn keys(&self) -> (&'static str, &'static str) {
        match self {
            Self::TooLarge(pair) => (pair.key, pair.bound_key),
            Self::MutuallyExclusive { key, other_key, .. } => (key, other_key),
        }
    }

    /// Errors on the first pair whose value is above its bound.
    pub(super) fn reject_above(pairs: impl IntoIterator<Item = BoundCheck>) -> Result<(), Self> {
        let mut pairs = pairs.into_iter();
        let wrong = pairs.find(|pair| pair.value > pair.bound);
        wrong.map_or(Ok(()), |pair| Err(Self::TooLarge(pair)))
    }

    /// Errors on the first pair whose value is not below its bound.
    pub(super) fn reject_not_below(
        pairs: impl IntoIterator<Item = BoundCheck>,
    ) -> Result<(), Self> {
        let mut pairs = pairs.into_iter();
        let wrong = pairs.find(|pair| pair.value >= pair.bound);
        wrong.map_or(Ok(()), |pair| Err(Self::TooLarge(pair)))
    }
}
