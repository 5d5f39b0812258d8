//! A small vector of amounts, nearly always at most two.

use crate::amount::Amount;

/// Amounts in a fixed order. Up to two, such as cpu and memory, need no allocation.
#[derive(Clone, Debug)]
pub(crate) enum SmallAmounts {
    One([Amount; 1]),
    Two([Amount; 2]),
    Many(Box<[Amount]>),
}

impl SmallAmounts {
    pub(crate) fn new(mut amounts: impl ExactSizeIterator<Item = Amount>) -> Self {
        let count = amounts.len();
        let mut next = || amounts.next().unwrap_or_default();
        match count {
            1 => Self::One([next()]),
            2 => Self::Two([next(), next()]),
            // Also for none: an empty box does not allocate.
            _ => Self::Many(amounts.collect()),
        }
    }

    pub(crate) fn as_slice(&self) -> &[Amount] {
        match self {
            Self::One(amounts) => amounts,
            Self::Two(amounts) => amounts,
            Self::Many(amounts) => amounts,
        }
    }
}
