//! Settings that are each in range and make no sense together.

/// Two settings that are each in range and make no sense together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigConflict {
    /// One is too large for the other.
    #[error("{0}; raise the second or lower the first")]
    TooLarge(BoundCheck),
    /// Only one of them may be given.
    #[error("{key} and {other_key} are both given: {why}; leave one of them out")]
    MutuallyExclusive {
        /// One key.
        key: &'static str,
        /// The other.
        other_key: &'static str,
        /// What would come of it.
        why: &'static str,
    },
}

/// Two numbers of which the second bounds the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} is {value}, and {bound_key} is {bound}: {why}")]
pub struct BoundCheck {
    /// The key that must not be above the other.
    pub key: &'static str,
    /// What it is set to.
    pub value: u64,
    /// The key that bounds it.
    pub bound_key: &'static str,
    /// What that one is set to.
    pub bound: u64,
    /// What would come of it.
    pub why: &'static str,
}

impl ConfigConflict {
    /// The two keys.
    #[must_use]
    pub fn keys(&self) -> (&'static str, &'static str) {
        match self {
            Self::TooLarge(pair) => (pair.key, pair.bound_key),
            Self::MutuallyExclusive { key, other_key, .. } => (key, other_key),
        }
    }

    /// The first pair in which the first is above the second is one.
    pub(super) fn reject_above(pairs: impl IntoIterator<Item = BoundCheck>) -> Result<(), Self> {
        let mut pairs = pairs.into_iter();
        let wrong = pairs.find(|pair| pair.value > pair.bound);
        wrong.map_or(Ok(()), |pair| Err(Self::TooLarge(pair)))
    }

    /// The first pair in which the first is not below the second is one.
    pub(super) fn reject_not_below(
        pairs: impl IntoIterator<Item = BoundCheck>,
    ) -> Result<(), Self> {
        let mut pairs = pairs.into_iter();
        let wrong = pairs.find(|pair| pair.value >= pair.bound);
        wrong.map_or(Ok(()), |pair| Err(Self::TooLarge(pair)))
    }
}
