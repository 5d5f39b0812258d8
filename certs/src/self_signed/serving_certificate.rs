//! The serving certificate of the directory: `tls.crt` and `tls.key`.

use super::ca::CaCertificate;
use super::directory::{
    CA_CERTIFICATE, CERTIFICATE, CERTIFICATE_MODE, CertificateDirectory, KEY, KEY_MODE,
};
use super::error::SelfSignedError;
use super::issue;
use super::names::{DAY_S, RENEWAL_DAYS};
use crate::tls::{self, TlsError};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;
use std::time::Duration;

/// Returns true if a client that trusts the CA accepts the certificate under every name, now and for
/// [`RENEWAL_DAYS`] more.
///
/// A file that is no certificate or key is an error.
pub(super) fn is_valid(
    directory: &CertificateDirectory,
    authority: &CaCertificate,
    names: &[ServerName<'static>],
    now_s: u64,
) -> Result<bool, SelfSignedError> {
    if !directory.has_file(CERTIFICATE)? || !directory.has_file(KEY)? {
        return Ok(false);
    }
    let pair = tls::certified_key(&directory.file(CERTIFICATE), &directory.file(KEY));
    let chain = match pair {
        Ok(pair) => pair.cert,
        // A crash between the two writes; the pair is issued again.
        Err(TlsError::KeyMismatch { .. }) => return Ok(false),
        // lockkeeper writes files atomically, so another program wrote this one.
        Err(error) => return Err(error.into()),
    };
    let Some((certificate, intermediates)) = chain.split_first() else {
        return Ok(false);
    };
    let verifier = verifier(directory, authority)?;
    let accepted = |name: &ServerName<'_>, at_s: u64| {
        let at = UnixTime::since_unix_epoch(Duration::from_secs(at_s));
        verifier
            .verify_server_cert(certificate, intermediates, name, &[], at)
            .is_ok()
    };
    Ok(names
        .iter()
        .all(|name| accepted(name, now_s) && accepted(name, now_s + RENEWAL_DAYS * DAY_S)))
}

/// Issues a new serving certificate and writes it.
pub(super) fn create(
    directory: &CertificateDirectory,
    authority: &CaCertificate,
    names: &[ServerName<'static>],
    now_s: u64,
) -> Result<(), SelfSignedError> {
    let issuer = authority.issuer(directory)?;
    let (key, certificate) = issue::issue_serving_certificate(
        &issuer,
        authority.ends_s,
        names,
        now_s,
        issue::SERVING_VALIDITY_DAYS,
    )?;
    // A crash between the two writes leaves a mismatch, which `is_valid` finds at the next start.
    directory.write(KEY, KEY_MODE, &key.serialize_pem())?;
    directory.write(CERTIFICATE, CERTIFICATE_MODE, &certificate.pem())
}

/// Returns the verifier of a client that trusts only this CA.
fn verifier(
    directory: &CertificateDirectory,
    authority: &CaCertificate,
) -> Result<Arc<WebPkiServerVerifier>, SelfSignedError> {
    let not_authority = || SelfSignedError::NotCa {
        path: directory.file(CA_CERTIFICATE),
    };
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::clone(&authority.certificate))
        .map_err(|_| not_authority())?;
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), tls::provider())
        .build()
        .map_err(|_| not_authority())
}
