//! Base64 with padding, as Go decodes it: line breaks are ignored, and so are the bits after the last byte.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

const CONFIG: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);

const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);

const URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);

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
    let engine = match alphabet {
        Alphabet::Standard => STANDARD,
        Alphabet::Url => URL,
    };
    engine.decode(text).ok()
}

/// Encodes bytes in the standard alphabet.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
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
        assert_eq!(
            decode("aGVsbG9=", Alphabet::Standard),
            Some(b"hello".to_vec())
        );
        assert_eq!(
            decode("aGVs\r\nbG8=", Alphabet::Standard),
            Some(b"hello".to_vec())
        );
        assert_eq!(decode("", Alphabet::Standard), Some(Vec::new()));
    }
}
