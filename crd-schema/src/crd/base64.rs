//! Base64 with padding, as Go decodes it: line breaks are ignored.

/// The signs for 62 and 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// `+` and `/`.
    Standard,
    /// `-` and `_`.
    Url,
}

/// Decodes a text. `None` if it is not valid.
pub(crate) fn decode(text: &str, alphabet: Alphabet) -> Option<Vec<u8>> {
    let text: String = text
        .chars()
        .filter(|it| !matches!(it, '\r' | '\n'))
        .collect();
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len().checked_sub(digits.len())? > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    let (mut buffer, mut bits) = (0_u32, 0_u32);
    for digit in digits.bytes() {
        let value = match (digit, alphabet) {
            (b'A'..=b'Z', _) => digit.checked_sub(b'A')?,
            (b'a'..=b'z', _) => digit.checked_sub(b'a')?.checked_add(26)?,
            (b'0'..=b'9', _) => digit.checked_sub(b'0')?.checked_add(52)?,
            (b'+', Alphabet::Standard) | (b'-', Alphabet::Url) => 62,
            (b'/', Alphabet::Standard) | (b'_', Alphabet::Url) => 63,
            _ => return None,
        };
        buffer = ((buffer << 6) | u32::from(value)) & 0xff_ffff;
        bits = bits.checked_add(6)?;
        if bits >= 8 {
            bits = bits.checked_sub(8)?;
            out.push(u8::try_from((buffer >> bits) & 0xff).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{Alphabet, decode};

    #[test]
    fn decode_alphabets_are_distinct() {
        assert_eq!(
            decode("aGVsbG8=", Alphabet::Standard),
            Some(b"hello".to_vec())
        );
        assert_eq!(decode("+/8=", Alphabet::Standard), Some(vec![0xfb, 0xff]));
        assert_eq!(decode("-_8=", Alphabet::Url), Some(vec![0xfb, 0xff]));
        assert_eq!(decode("-_8=", Alphabet::Standard), None);
        assert_eq!(decode("aGVsbG8", Alphabet::Standard), None);
        assert_eq!(decode("", Alphabet::Standard), Some(Vec::new()));
    }
}
