//! Certificates in PEM, as far as the API server checks them.

use super::base64::{Alphabet, decode};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The DER tags of a sequence and of a bit string.
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// Whether a bundle has a certificate, as `AppendCertsFromPEM` of the package `crypto/x509` of Go finds one.
///
/// The content of a certificate is not checked, only its outer form: the signed part, the algorithm and the signature.
pub(crate) fn has_certificate(bundle: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bundle);
    let mut blocks = text.split(BEGIN);
    blocks.next();
    blocks.any(|block| {
        // A block with headers, such as an encrypted one, is skipped.
        let Some((body, _)) = block.split_once(END).filter(|it| !it.0.contains(':')) else {
            return false;
        };
        let body: String = body.split_ascii_whitespace().collect();
        decode(&body, Alphabet::Standard).is_some_and(|it| is_certificate(&it))
    })
}

fn is_certificate(der: &[u8]) -> bool {
    let parts = || {
        let (content, rest) = element(der, SEQUENCE)?;
        let (_, after) = element(content, SEQUENCE)?;
        let (_, after) = element(after, SEQUENCE)?;
        let (_, after) = element(after, BIT_STRING)?;
        Some(rest.is_empty() && after.is_empty())
    };
    parts() == Some(true)
}

/// The content of an element with a tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.split_first()?;
    let (short, rest) = rest.split_first()?;
    if *first != tag {
        return None;
    }
    let (length, rest) = match short {
        0..=0x7f => (usize::from(*short), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            let length = digits.iter().try_fold(0_usize, |length, digit| {
                length.checked_mul(256)?.checked_add(usize::from(*digit))
            })?;
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, has_certificate};
    use crate::crd::base64::encode;

    fn pem(der: &[u8]) -> Vec<u8> {
        format!("{BEGIN}\n{}\n{END}\n", encode(der)).into_bytes()
    }

    #[test]
    fn has_certificate_other_content_is_false() {
        const OUTER: [u8; 9] = [0x30, 7, 0x30, 0, 0x30, 0, 0x03, 1, 0];
        let mut surplus = OUTER.to_vec();
        surplus.push(0);
        for (bundle, expected) in [
            (pem(&OUTER), true),
            ([pem(&[1]), pem(&OUTER)].concat(), true),
            (pem(&surplus), false),
            (pem(&[0x30, 0]), false),
            (b"invalid".to_vec(), false),
            (format!("{BEGIN}\nProc-Type: a\n{END}").into_bytes(), false),
            (format!("{BEGIN}\n====\n{END}").into_bytes(), false),
            (BEGIN.into(), false),
        ] {
            assert_eq!(has_certificate(&bundle), expected, "{bundle:?}");
        }
    }
}
