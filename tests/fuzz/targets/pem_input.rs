//! PEM texts from inputs, so that mutations reach the decoders behind the base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// The input as it is; with a C or K as the first byte, the PEM text of a certificate or key with the rest as its DER.
pub fn in_pem(input: &[u8]) -> Vec<u8> {
    let (label, der) = match input {
        [b'C', der @ ..] => ("CERTIFICATE", der),
        [b'K', der @ ..] => ("PRIVATE KEY", der),
        whole => return whole.to_vec(),
    };
    let body = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into_bytes()
}
