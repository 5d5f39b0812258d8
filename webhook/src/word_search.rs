//! Searches for bytes a machine word at a time. Most strings of a review have fewer bytes than two words.

/// The bytes of a machine word.
pub(crate) const WORD_BYTES: usize = size_of::<u64>();

/// A word of which each byte is this one.
const fn repeat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; WORD_BYTES])
}

/// Flags for the bytes of a word. A flag above the first one may be wrong.
#[derive(Clone, Copy)]
pub(crate) struct Matches(u64);

impl Matches {
    /// The bytes that are below this one, which is at most 128.
    #[inline]
    pub(crate) const fn below(word: [u8; WORD_BYTES], limit: u8) -> Self {
        let word = u64::from_le_bytes(word);
        // The subtraction sets the high bit of each smaller byte, and may borrow from the byte above it.
        Self(word.wrapping_sub(repeat(limit)) & !word & repeat(0x80))
    }

    /// The bytes that equal this one.
    #[inline]
    pub(crate) const fn equal(word: [u8; WORD_BYTES], byte: u8) -> Self {
        let difference = u64::from_le_bytes(word) ^ repeat(byte);
        Self::below(difference.to_le_bytes(), 1)
    }

    /// The matches of both.
    #[inline]
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The position of the first match.
    #[inline]
    pub(crate) fn first(self) -> Option<usize> {
        let position = self.0.trailing_zeros().wrapping_div(u8::BITS);
        (self.0 != 0).then(|| usize::try_from(position).unwrap_or_default())
    }
}

/// The position of the first byte that JSON escapes: a quote, a backslash or a control character.
#[inline]
pub(crate) fn first_escaped(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let controls = Matches::below(*word, b' ');
        let others = Matches::equal(*word, b'"').or(Matches::equal(*word, b'\\'));
        if let Some(at) = controls.or(others).first() {
            return Some(index.wrapping_mul(WORD_BYTES).wrapping_add(at));
        }
    }
    let at = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))?;
    Some(text.len().wrapping_sub(rest.len()).wrapping_add(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn first_match_equals_plain_search(word in any::<[u8; WORD_BYTES]>(), limit in 0..=128_u8, at in 0..WORD_BYTES) {
            let below = Matches::below(word, limit);
            prop_assert_eq!(below.first(), word.iter().position(|it| *it < limit));
            let byte = word.get(at).copied().unwrap_or_default();
            let equal = Matches::equal(word, byte);
            prop_assert_eq!(equal.first(), word.iter().position(|it| *it == byte));
            let either = below.or(equal).first();
            prop_assert_eq!(either, word.iter().position(|it| *it < limit || *it == byte));
        }
    }
}
