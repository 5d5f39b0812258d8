//! The ends of certificates.

use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The end of a certificate in DER, in seconds since 1970; `None` if it is damaged.
#[must_use]
pub fn certificate_end_s(der: &[u8]) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

/// The end of the newest certificate of a CA bundle in PEM, in seconds since 1970.
///
/// # Errors
///
/// The reason if the text contains no certificate, or a damaged one.
pub(crate) fn newest_end_s(bundle: &[u8]) -> Result<i64, String> {
    let mut newest = None;
    for block in Pem::iter_from_buffer(bundle) {
        let block = block.map_err(|error| format!("it is not PEM: {error}"))?;
        let certificate = block
            .parse_x509()
            .map_err(|error| format!("it contains a damaged certificate: {error}"))?;
        newest = newest.max(Some(certificate.validity().not_after.timestamp()));
    }
    newest.ok_or_else(|| "it contains no certificate".to_owned())
}
